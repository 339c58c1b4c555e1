"""How kernels are compiled, and under which name the machine code is kept (where: cache.py).

`@kernel` marks a function that a team runs (team.py); `@device` a function that kernels call.
Both release the interpreter lock; `@holding` marks the few that keep it.

Numba's own cache looks only at the file of the kernel, so it returns old code when a helper in
another file changes.  This cache names the code by a hash over the kernel's file, all of this
folder, and every file of the package that they import, directly or not, at the top of the file: all
functions and constants that a kernel uses are there.  So an edit recompiles all kernels that it can
change.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import serialize, types
from numba.core.caching import _Cache as _NumbaCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from matchwood.engines.cpu import cache

PACKAGE = Path(__file__).resolve().parents[2]

# No `fastmath`: it would break NaN checks, and results would depend on the compiler.  The NumPy
# error model drops the division-by-zero branch, which no kernel relies on.  Kernels allocate
# nothing, so arrays need no reference counts.  With them every call of a device function inside a
# loop counts atomically, which made a matching four times slower.  A kernel that allocates does not
# compile.  No C callback is made of any function.
_OPTIONS: dict[str, bool | str] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
}  # fmt: skip
# The wrapper that unpacks records of many arrays from Python is often more code than the function
# itself; it took a fifth of the time to compile a search.  Only kernels are called from Python.
_INSIDE = {**_OPTIONS, "no_cpython_wrapper": True}


def _holds_kernels(path: Path) -> bool:
    return path.match("cpu*.py") or "cpu" in path.relative_to(PACKAGE).parts


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
    """A hash over everything that the code of a file's kernels depends on: sources, compiler,
    settings."""
    settings = [getattr(numba.config, name, None) for name in ("BOUNDSCHECK", "OPT", "DEBUGINFO")]
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    digest.update(repr(settings).encode())
    reached, waiting = set(), {path, *(PACKAGE / "engines" / "cpu").glob("*.py")}
    while waiting:
        file = waiting.pop()
        reached.add(file)
        waiting |= _imported(file) - reached
    for file in sorted(reached):
        digest.update(str(file.relative_to(PACKAGE)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _Cache(_NumbaCache):  # type: ignore[misc]
    """One file for each compiled signature, named by a hash of what it was compiled for.

    Numba numbers its files through an index; two processes that compile at the same time can then
    take one number for different code.  With hashes there is no such conflict.  A file that is
    damaged, or cannot be written, costs one more compilation and does no other harm.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        return str(cache.cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        code = None if path is None else cache.load(path)
        if code is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # any fault of the file: it is compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(sig, data.codegen)
        if path is not None and not data.library.has_dynamic_globals:
            cache.save(path, serialize.dumps(data._reduce()))

    def enable(self) -> None:
        """Does nothing: the cache is always in use where there is a folder."""

    disable = flush = enable

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        """The file of a signature; None when no name would be the same in another process."""
        folder = cache.cache_folder()
        cells = self._function.__closure__ or ()
        values = (*sig, *(cell.cell_contents for cell in cells))
        named = [_name(value) for value in values]
        if folder is None or None in named:
            return None
        code, file = self._function.__code__, _file(self._function)
        key = repr((source_hash(file), named, codegen.magic_tuple(), code.co_code))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        # the function's name is for human readers; the digest alone would be enough
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        name = name.replace("<", "").replace(">", "")
        return folder / f"{name}.{digest}.nbc"


def _name(value: Any) -> str | None:
    """A name, the same in every process, for an argument's type or a value of a closure.

    A function of this package is named by its name and the hash of its sources.  A function from
    elsewhere may change at any time, so it gets None.
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
            f"{function.__qualname__}: kernels live in cpu.py or in a folder cpu/, "
            f"which is where readers look for them; {path.name} is neither"
        )


def _inside(function: Callable[..., Any], **options: Any) -> Any:
    """Compiled for kernels alone.  It has no address that Python could call: a call is refused."""
    _require_hashed(function)
    made = numba.njit(**_INSIDE, **options)(function)

    def refuse(*arguments: Any, **named: Any) -> None:
        raise TypeError(f"{function.__qualname__}: only kernels can call this function")

    def add(code: CompileResult) -> None:
        made.overloads[tuple(code.signature.args)] = code

    made._compile_for_args = refuse  # which Numba calls where it knows no address
    made.add_overload = add  # does not give Numba an address
    return made


def device(function: Callable[..., Any]) -> Any:
    """A function that kernels call, and Python cannot; it is compiled into them."""
    return _inside(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A `device` function that takes other functions as arguments; expanded where it is called."""
    return _inside(function, inline="always")


def expanded(function: Callable[..., Any]) -> Any:
    """A `device` function that LLVM inlines where it is called.

    For the stages of a long kernel: then records with many arrays cost nothing as arguments.
    """
    return _inside(function, forceinline=True)


def kernel(function: Callable[..., Any]) -> Any:
    """A function that every member of a team runs; its first argument is the team."""
    return _from_python(function, _OPTIONS)


def holding(function: Callable[..., Any]) -> Any:
    """A function that Python calls, and that runs with the interpreter's lock held."""
    return _from_python(function, {**_OPTIONS, "nogil": False})


def _from_python(function: Callable[..., Any], options: dict[str, bool | str]) -> Any:
    _require_hashed(function)
    dispatcher = numba.njit(**options)(function)
    if _file(function).is_relative_to(PACKAGE):
        dispatcher._cache = _Cache(function)
    return dispatcher
