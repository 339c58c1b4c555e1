"""Which engine a call runs on.

Where the data lives decides: NumPy and SciPy arrays run on CPU threads, CuPy's on their GPU.
`engine=` overrules that; the data is then moved for the call, and the result is moved back to where
the input was.  Nothing is moved unless asked for, and no engine is ever replaced by another.

CuPy and mpi4py are optional: they are imported here, when an engine needs them.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from matchwood._lazy import import_whole
from matchwood.errors import EngineUnavailable, OutOfMemory

ENGINES = ("reference", "cpu", "gpu")
BEYOND = "graphs larger than the GPU need engine=matchwood.Devices(), where a function has it"


_forked = ""  # why this process cannot use the GPU although its parent could


def _leave_the_gpu() -> None:
    """Refuse the GPU in a forked child: CUDA does not survive a fork, and calls may crash."""
    global _forked
    if _cupy_or_reason.cache_info().currsize and _cupy_or_reason()[0] is not None:
        _cupy_or_reason.cache_clear()
        _forked = (
            "this process was forked from one that uses the GPU, and CUDA does not survive a fork: "
            "start processes by 'spawn', or fork before the GPU is first used"
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_the_gpu)


@functools.cache
def _cupy_or_reason() -> tuple[ModuleType | None, str]:
    if _forked:
        return None, _forked
    try:
        module = importlib.import_module("cupy")
    except ImportError:
        return None, (
            "the GPU engine needs CuPy, which is not installed: "
            "pip install 'matchwood[gpu-cuda13]' or 'matchwood[gpu-cuda12]'"
        )
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own classes for a missing driver
        return None, f"CuPy finds no usable GPU: {error}"
    return (module, "") if count else (None, "CuPy finds no GPU")


def cupy() -> Any:
    """CuPy, or `EngineUnavailable` with the reason."""
    module, reason = _cupy_or_reason()
    if module is None:
        raise EngineUnavailable(reason)
    return module


def gpu_available() -> bool:
    """True when CuPy is installed and sees a GPU."""
    return _cupy_or_reason()[0] is not None


def location(array: Any) -> str:
    """The engine on which an array lives: "cpu" or "gpu"."""
    loaded = sys.modules.get("cupy")
    return "gpu" if loaded is not None and isinstance(array, loaded.ndarray) else "cpu"


def xp(array: Any) -> Any:
    """The module of an array's functions: NumPy, or CuPy for an array on a GPU."""
    return cupy() if location(array) == "gpu" else _numpy()


@functools.cache
def _numpy() -> Any:
    """NumPy; to import it anew in each call takes 3 us."""
    return importlib.import_module("numpy")


def moved(array: Any, engine: str) -> Any:
    """The array on that engine; itself when it is there already."""
    if array is None or location(array) == engine:
        return array
    return cupy().asarray(array) if engine == "gpu" else array.get()


def frozen(array: Any) -> Any:
    """The memory of an array as one that nobody can write to, nor make writeable again.

    For arrays that users see and kernels trust later.  Nobody else may hold the array that was
    passed.  CuPy has no such arrays: one on a GPU is returned as it is.
    """
    if location(array) == "gpu":
        return array
    import numpy as np

    if array.dtype.hasobject:  # no kernel reads objects
        kept = array.copy()
        kept.flags.writeable = False
        return kept
    plain = array if array.flags.c_contiguous else array.copy()
    memory = plain.reshape(-1).view(np.uint8).data.toreadonly()
    made = np.frombuffer(memory, array.dtype)
    return made if array.ndim == 1 else made.reshape(array.shape)


def shown(array: Any) -> tuple[Any, Any]:
    """(the user's, the library's) of an array that users see and kernels trust later.

    On the CPU both are the same, read-only; on a GPU the user has a copy.
    """
    seen = array.copy() if location(array) == "gpu" else frozen(array)
    return seen, array if location(array) == "gpu" else seen


def resolve(where: str, engine: str | None, caller: str | None = None, threads: Any = None) -> str:
    """The engine of a call on data that lives at `where`; `caller` is named in messages.

    The `threads` of the call are checked too: also an engine without threads refuses wrong ones.
    """
    check_threads(threads)
    if engine is None:
        return where
    if type(engine) is not str or engine not in ENGINES:
        _refuse(engine, caller)
    if engine == "gpu":
        cupy()
    return engine


def _refuse(engine: Any, caller: str | None) -> NoReturn:
    """Raise for an engine that this function does not have, or that does not exist."""
    from matchwood.arguments import shown

    expected = ", ".join(repr(name) for name in ENGINES)
    who = "" if caller is None else f"{caller}: "
    if getattr(type(engine), "ENGINE", None) is not None:  # a value that names an engine: Devices
        raise EngineUnavailable(
            f"{who}this function has no engine for {type(engine).__name__}; "
            f"here engine must be None or one of {expected}"
        )
    raise ValueError(f"{who}engine must be None or one of {expected}, got {shown(engine)}")


def check_threads(threads: Any) -> None:
    """Raise, in the name of the function that was called, unless a team may have `threads`."""
    if threads is not None:
        from matchwood.engines.cpu.cpus import checked_threads

        checked_threads(threads)


def load(package: str, engine: str) -> Any:
    """The module of a problem that holds that engine; a missing file is a missing engine.

    Its functions raise `OutOfMemory` where memory runs out.
    """
    known = _loaded.get((package, engine))
    if known is not None:  # the common case: every call passes here, some more than once
        return known
    try:
        made = Engine(import_whole(f"{package}.{engine}"))
        return _loaded.setdefault((package, engine), made)
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{engine}":
            raise
        problem = package.removeprefix("matchwood.")
        what = "engine for Devices" if engine == "devices" else f"{engine!r} engine"
        raise EngineUnavailable(f"{problem} has no {what}") from None


class Engine:
    """A module of an engine, whose functions raise `OutOfMemory` when memory runs out."""

    __slots__ = ("_module",)

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattribute__(self, name: str) -> Any:
        # not __getattr__, which costs 2 us: it is asked after an AttributeError has been made
        found = getattr(object.__getattribute__(self, "_module"), name)
        return _telling(found) if type(found) is FunctionType else found


_loaded: dict[tuple[str, str], Engine] = {}


@functools.cache
def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def tells(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except MemoryError as error:
            raise out_of_memory(error) from error

    return tells


def out_of_memory(error: MemoryError) -> OutOfMemory:
    """`OutOfMemory` for an error of NumPy, CuPy or Python; names the function that was called."""
    if isinstance(error, OutOfMemory):
        return error
    from matchwood.engines.cpu.cpus import called_function

    text = str(error).strip().rstrip(".")
    what = text[:1].lower() + text[1:] if text else "no more can be had"
    if type(error).__module__.split(".")[0] == "cupy":
        what += f"; {BEYOND}"
    return OutOfMemory(f"{called_function()}: not enough memory: {what}; the input is as it was")


def home(engine: str) -> str:
    """Where an engine's arrays live: the reference reads NumPy arrays."""
    return "gpu" if engine == "gpu" else "cpu"


def call(
    package: str, function: str, arguments: tuple[Any, ...], engine: str | None, **options: Any
) -> Any:
    """Call ``function(*arguments, **options)`` of the engine's file in `package`.

    The engine is the one where the arrays live, unless `engine` names another; then the arrays
    are moved there for the call, and the result (an array or a tuple of arrays) is moved back.
    """
    places = {location(value) for value in arguments if hasattr(value, "__len__")}
    if len(places) > 1:
        raise TypeError(f"{function}: all arrays must live on one engine, got CPU and GPU arrays")
    where = places.pop()
    chosen = resolve(where, engine, function, options.get("threads"))
    place = home(chosen)
    there = [moved(value, place) if hasattr(value, "__len__") else value for value in arguments]
    result = getattr(load(package, chosen), function)(*there, **options)
    if isinstance(result, tuple):
        return tuple(moved(value, where) for value in result)
    return moved(result, where)
