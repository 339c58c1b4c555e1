"""Functions that are compiled: what the decorators return, and what their machine code depends on.

`@kernel` marks a function that a team runs (team.py); `@device` a function that kernels call.
`@routine` marks the few that Python calls with plain integers.  All of them are records here: Numba
is imported when one is compiled (jit.py), and not where machine code exists already (code.py).

Numba's own cache looks only at the file of the kernel, so it returns old code when a helper in
another file changes.  Here code is named by a hash over the kernel's file, all of this folder, and
every file of the package that they import, directly or not, at the top of the file: all functions
and constants that a kernel uses are there.  So an edit recompiles all kernels that it can change.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from matchwood._lazy import import_whole

PACKAGE = Path(__file__).resolve().parents[2]
LARGEST = np.iinfo(np.int64).max  # Numba takes a larger int for unsigned


class Later:
    """A module that is imported when one of its names is first used: the compiler's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_whole(self._name), name)


class Function:
    """A function to be compiled.  jit.py lets Numba take it for its own."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        _require_hashed(function)
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options  # Numba looks for "inline" here
        self.lasting = file_of(function).is_relative_to(PACKAGE)  # its code is kept in the cache

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError(f"{self.__qualname__}: only kernels can call this function")


class Kernel(Function):
    """A function whose machine code can be called from outside: it has an entry (see jit.py)."""


class Routine(Kernel):
    """A kernel whose arguments are integers in registers, not words in memory."""


class Intrinsic:
    """A function whose body is LLVM's: see numba.extending.intrinsic."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function


class External:
    """A function of the C library or of Python by its symbol, `kinds` its result and arguments."""

    def __init__(self, symbol: str, *kinds: str) -> None:
        self.symbol, self.kinds = symbol, kinds


def device(function: Callable[..., Any]) -> Any:
    """A function that kernels call, and Python cannot; it is compiled into them."""
    return Function(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A `device` function that takes other functions as arguments; expanded where it is called."""
    return Function(function, inline="always")


def expanded(function: Callable[..., Any]) -> Any:
    """A `device` function that LLVM inlines where it is called.

    For the stages of a long kernel: then records with many arrays cost nothing as arguments.
    """
    return Function(function, forceinline=True)


def kernel(function: Callable[..., Any]) -> Any:
    """A function that every member of a team runs; its first argument is the team."""
    return Kernel(function)


def routine(function: Callable[..., Any]) -> Any:
    """A function of 64-bit integers (addresses, mostly), for native.py."""
    return Routine(function)


def intrinsic(function: Callable[..., Any]) -> Any:
    return Intrinsic(function)


def external(symbol: str, *kinds: str) -> Any:
    return External(symbol, *kinds)


def is_compiled(value: Any) -> bool:
    """Whether kernels can call it: a function of ours, or one that Numba knows."""
    return isinstance(value, Function) or hasattr(type(value), "_numba_type_")


def file_of(function: Callable[..., Any]) -> Path:
    return Path(function.__code__.co_filename).resolve()


def _require_hashed(function: Callable[..., Any]) -> None:
    path = file_of(function)
    if not path.is_relative_to(PACKAGE):
        return
    if not _holds_kernels(path):
        raise RuntimeError(
            f"{function.__qualname__}: kernels live in cpu.py or in a folder cpu/, "
            f"which is where readers look for them; {path.name} is neither"
        )
    _content_hash(path)  # now: the file may change while this process runs what was in it


def _holds_kernels(path: Path) -> bool:
    return path.match("cpu*.py") or "cpu" in path.relative_to(PACKAGE).parts


# What machine code depends on

_IMPORT = re.compile(
    rf"^(?:import ({PACKAGE.name}[\w.]*)|from ({PACKAGE.name}[\w.]*) import (\([^)]*\)|[^\n(]*))",
    re.MULTILINE,
)


@functools.cache
def _imported(path: Path) -> frozenset[Path]:
    """Files of the package that a file imports at its top."""
    names = []
    for whole, module, items in _IMPORT.findall(path.read_text(encoding="utf-8")):
        names.append(whole or module)
        words = re.sub(r"#[^\n]*", "", items).strip("()").split(",")
        names += [f"{module}.{word.split()[0]}" for word in words if word.strip()]
    found = set()
    for name in names:
        place = PACKAGE.joinpath(*name.split(".")[1:])
        found |= {place.with_suffix(".py"), place / "__init__.py"}
    return frozenset(file for file in found if file.is_file())


@functools.cache
def _content_hash(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@functools.cache
def source_hash(path: Path) -> str:
    """A hash over all sources that the code of a file's kernels depends on."""
    digest = hashlib.sha256()
    reached, waiting = set(), {path, *(PACKAGE / "engines" / "cpu").glob("*.py")}
    while waiting:
        file = waiting.pop()
        reached.add(file)
        waiting |= _imported(file) - reached
    for file in sorted(reached):
        digest.update(str(file.relative_to(PACKAGE)).encode())
        digest.update(_content_hash(file))
    return digest.hexdigest()


def read_anew() -> None:
    """Forget all hashes: the sources may have changed."""
    for known in (_imported, _content_hash, source_hash):
        known.cache_clear()


# How arguments are described: a name for each type, a list for a tuple


def described(value: Any) -> Any:
    """What decides the machine code for an argument; None where only Numba knows.

    "int32 1C" is an array of one dimension in C order, "int64" a number; the first item of a list
    is the class of a NamedTuple, "" of another tuple; "module:name" a function.  A read-only array
    is described as others: a kernel writes only to what it was given to write to, and one form of
    it is enough.
    """
    if isinstance(value, np.ndarray):
        return _described_array(value)
    if isinstance(value, tuple):
        kind = type(value)
        items = [described(item) for item in value]
        if (kind is not tuple and "<locals>" in kind.__qualname__) or None in items:
            return None
        return ["" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}", *items]
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, np.generic):
        return value.dtype.name if value.dtype.kind in "iuf" else None
    if type(value) is int:
        return "int64" if value <= LARGEST else "uint64"
    if type(value) is float:
        return "float64"
    return name_of(value) if isinstance(value, Function) else None


def _described_array(value: np.ndarray[Any, Any]) -> str | None:
    flags, kind = value.flags, value.dtype
    if kind.kind not in "biuf" or not kind.isnative:
        return None
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return f"{kind.name} {value.ndim}{order}{'' if flags.aligned else ' unaligned'}"


def name_of(function: Function) -> str | None:
    """Where it stands, the same in every process; None of one that may change at any time."""
    inside = function.lasting and not function.py_func.__closure__
    return f"{function.__module__}:{function.__qualname__}" if inside else None


def signature(kernel: Kernel, values: tuple[Any, ...]) -> str | None:
    """A kernel and the types of its arguments as text; None where only Numba knows them."""
    parts = [name_of(kernel), *map(described, values)]
    return None if None in parts else json.dumps(parts, separators=(",", ":"))


def sources(text: str) -> set[Path]:
    """The files whose `source_hash` the code of a signature depends on: the kernel's, and those of
    functions that it is given."""
    name, *waiting = json.loads(text)
    names = [name]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part[1:]
        elif ":" in part:
            names.append(part)
    return {file_of(found(name).py_func) for name in names}


def found(name: str) -> Any:
    """What stands at "module:name"."""
    module, _, path = name.partition(":")
    home = sys.modules.get(module) or importlib.import_module(module)
    return functools.reduce(getattr, path.split("."), home)
