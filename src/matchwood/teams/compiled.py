"""How kernels are compiled and where the machine code is kept.

`@kernel` marks a function that a team runs (team.py); `@device` a function that kernels call.
Both release the interpreter lock.

Numba's own cache looks only at the file of the kernel, so it serves stale code when a helper in
another file changes.  Ours names the code by a hash over the kernel's file, all of teams/, and
every file of the package that they import, directly or not, at the top of the file: where the
functions and constants that a kernel uses come from.  An edit recompiles what it can touch.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import serialize, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher

from matchwood._version import __version__

PACKAGE = Path(__file__).resolve().parent.parent

# No `fastmath`: it would break NaN checks and the promise of one answer.  The NumPy error model
# drops the division-by-zero branch, which no kernel relies on.  Kernels allocate nothing, so arrays
# need no reference counts: with them every call of a device function inside a loop counts
# atomically, which made a matching four times slower.  A kernel that allocates does not compile.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def _holds_kernels(path: Path) -> bool:
    return path.match("cpu*.py") or path.parent == PACKAGE / "teams"


@functools.cache
def _imported(path: Path) -> frozenset[Path]:
    """Files of the package that a file imports at its top."""
    names = []
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    found = set()
    for name in names:
        first, *rest = name.split(".")
        if first == PACKAGE.name:
            place = PACKAGE.joinpath(*rest)
            found |= {place.with_suffix(".py"), place / "__init__.py"}
    return frozenset(file for file in found if file.is_file())


@functools.cache
def source_hash(path: Path) -> str:
    """Hash over all that decides what the kernels of a file do: sources, compiler, settings."""
    settings = [getattr(numba.config, name, None) for name in ("BOUNDSCHECK", "OPT", "DEBUGINFO")]
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    digest.update(repr(settings).encode())
    reached, waiting = set(), {path, *(PACKAGE / "teams").glob("*.py")}
    while waiting:
        file = waiting.pop()
        reached.add(file)
        waiting |= _imported(file) - reached
    for file in sorted(reached):
        digest.update(str(file.relative_to(PACKAGE)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def user_cache() -> Path:
    """Folder for compiled code: MATCHWOOD_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get("MATCHWOOD_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base or tempfile.gettempdir()) / "matchwood"


@functools.cache
def cache_folder() -> Path | None:
    """Where this version keeps its code; None when nothing can be written."""
    for base in (user_cache(), _private_temporary()):
        if base is None:
            continue
        folder = base / __version__
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def _private_temporary() -> Path | None:
    """A folder of this user's in the temporary folder; None if somebody else could write there.

    Loading the cache runs what is in it, and the temporary folder belongs to all.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"matchwood-{user}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o022):
        return None
    return folder


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Tells Numba's cache to use our folder and our hash."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._module = py_func.__module__
        self._py_file = py_file  # named in messages of Numba's

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_hash(Path(self._py_file).resolve())

    def get_disambiguator(self) -> str:
        return str(self._module)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return cls(py_func, py_file) if cache_folder() else None

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return ""


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]


class _Cache(FunctionCache):  # type: ignore[misc]
    """One file for each compiled signature, named by what it was compiled for.

    Numba numbers its files through an index; two processes that compile at the same time can then
    take one number for different code.  Here there is nothing to agree on.  A file that is cut
    off or cannot be written costs a compilation, no more.
    """

    _impl_class = _CacheImpl

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        path = self._path(sig, target_context.codegen())
        try:
            content = path.read_bytes() if path is not None else b""
        except OSError:
            return None
        if content[:_DIGEST] != hashlib.sha256(content[_DIGEST:]).digest():
            return None
        return self._impl.rebuild(target_context, pickle.loads(content[_DIGEST:]))

    def _save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(sig, data.codegen)
        if path is None or not self._impl.check_cachable(data):
            return
        code = serialize.dumps(self._impl.reduce(data))
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="unfinished-")
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(name, path)
            except OSError:
                os.unlink(name)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        """The file of a signature; None when no name would be the same in another process."""
        cells = self._py_func.__closure__ or ()
        values = (*sig, *(cell.cell_contents for cell in cells))
        named = [_name(value) for value in values]
        if None in named:
            return None
        source = source_hash(_file(self._py_func))
        key = repr((source, named, codegen.magic_tuple(), self._py_func.__code__.co_code))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return Path(self._cache_path) / f"{self._impl.filename_base}.{digest}.nbc"


_DIGEST = hashlib.sha256().digest_size


def _name(value: Any) -> str | None:
    """What an argument's type, or a value that a function encloses, is called in every process.

    A function of ours is known by its name and the hash of its sources; one from elsewhere may
    change at any time and has no name.
    """
    if isinstance(value, types.Dispatcher):
        value = value.dispatcher
    if isinstance(value, Dispatcher):
        function = value.py_func
        path = _file(function)
        if function.__closure__ or not (path.is_relative_to(PACKAGE) and _holds_kernels(path)):
            return None
        return f"{function.__module__}.{function.__qualname__} {source_hash(path)}"
    if isinstance(value, (types.Type, bool, int, float, str, bytes, type(None))):
        text = repr(value)
        return None if " at 0x" in text else text
    return None


def _file(function: Callable[..., Any]) -> Path:
    return Path(function.__code__.co_filename).resolve()


def _require_hashed(function: Callable[..., Any]) -> None:
    path = _file(function)
    if path.is_relative_to(PACKAGE) and not _holds_kernels(path):
        raise RuntimeError(
            f"{function.__qualname__}: kernels live in files named cpu*.py or in teams/, "
            f"which is where readers look for them; {path.name} is neither"
        )


def device(function: Callable[..., Any]) -> Any:
    """A function that kernels call; its code becomes part of theirs."""
    _require_hashed(function)
    return numba.njit(**_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A `device` function that takes other functions as arguments; expanded where it is called."""
    _require_hashed(function)
    return numba.njit(inline="always", **_OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """A function that every member of a team runs; its first argument is the team."""
    _require_hashed(function)
    dispatcher = numba.njit(**_OPTIONS)(function)
    inside = _file(function).is_relative_to(PACKAGE)
    if inside and cache_folder() is not None:
        dispatcher._cache = _Cache(function)
    return dispatcher
