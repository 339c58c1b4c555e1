"""Names that are imported when they are first used, so that a page of names costs nothing."""

from __future__ import annotations

import functools
import importlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

FRAGILE = ("numpy", "scipy.sparse")  # nearly every part imports these; kernels import Numba
LIGHT = {"matchwood.errors", "matchwood.machine.config"}  # parts that need neither
OURS = f"{__package__}."
LOOKS = 0.05  # seconds between two checks of an import that is under way, for systems on which
# Ctrl-C does not interrupt a lock


def attach(
    module: str,
    homes: Mapping[str, str] | Callable[[], Mapping[str, str]],
    old: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module (PEP 562) that only points at other modules.

    `homes` maps a name to the module that defines it; a name that maps to a module of the same
    name is that module itself; a function that returns the map is called when first needed, and
    serves `__all__` and `_HOMES` too.  `old` maps names of the last release to those of this one.
    """
    renamed = old or {}

    @functools.cache
    def known() -> Mapping[str, str]:
        return homes() if callable(homes) else homes

    def getattribute(name: str) -> Any:
        if name in renamed:
            return _with_warning(module, name, renamed[name])
        if name == "_HOMES":
            return known()
        if name == "__all__":
            return ["__version__", *known()]
        if name not in known():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place = known()[name]
        if place not in sys.modules and place not in LIGHT:
            for package in FRAGILE:
                import_whole(package)
        home = import_whole(place)
        value = home if place == f"{module}.{name}" else getattr(home, name)
        setattr(sys.modules[module], name, value)  # later accesses do not call this
        return value

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[module]), *known()})

    return getattribute, listing


def old_names(module: str, old: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names changed: the old ones work, with a warning."""

    def getattribute(name: str) -> Any:
        if name not in old:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _with_warning(module, name, old[name])

    return getattribute


def _with_warning(module: str, old: str, new: str) -> Any:
    import warnings

    text = f"{module}.{old} is now {module}.{new}; the old name goes with the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new)


def import_whole(package: str) -> Any:
    """Import a module so that Ctrl-C cannot cut it short; returns it.

    An interrupted import of NumPy or Numba leaves modules on which a second import fails.  And
    Python itself may leave the lock of any module with the interrupted thread: another thread that
    imports the module later, as the one that compiles kernels does, then waits for ever.  Ctrl-C
    reaches the main thread only, so another one imports, to the end, while the main thread waits.
    Ctrl-C frees the main thread at once; the next user of the module waits for the rest.
    """
    if package not in _whole:
        _import_whole(package)
        _whole.add(package)
    return sys.modules[package]


_whole: set[str] = set()
_lock = threading.Lock()  # held by a thread that imports: see `_import`
_importers: set[int] = set()  # the thread that holds it


def _import(package: str) -> None:
    """Import a module while no other thread imports one here.

    Modules that import each other fail where two threads begin with different ones: each finds one
    that the other has half imported.  A thread that is in the middle of a module of ours takes no
    turn: the one whose turn it is may wait for that module.
    """
    if threading.get_ident() in _importers or _in_module():
        importlib.import_module(package)
        return
    with _lock:
        _importers.add(threading.get_ident())
        try:
            importlib.import_module(package)
        finally:
            _importers.clear()


def _forget() -> None:
    """In a forked child: the thread that held the lock may not be there."""
    global _lock
    _lock = threading.Lock()
    _importers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _in_module() -> bool:
    """Whether this thread runs a module of ours, as an import statement does."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        name = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "<module>" and name.startswith(OURS):
            return True
    return False


def _importing() -> bool:
    """Whether this thread is importing: another thread that needs the module would wait for it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


def _import_whole(package: str) -> None:
    # A module that is there may be half imported by this thread: then no other can import it.
    apart = package not in sys.modules and not (_importing() and package.startswith(__package__))
    inside = threading.get_ident() in _importers
    if not apart or inside or threading.current_thread() is not threading.main_thread():
        _import(package)
        return
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            _import(package)
            outcome.put(None)
        except BaseException as caught:
            outcome.put(caught)

    try:
        threading.Thread(target=work, daemon=True, name="matchwood import").start()
    except RuntimeError:  # no thread available: import as usual
        _import(package)
        return
    while True:
        try:
            error = outcome.get(timeout=LOOKS)
            break
        except queue.Empty:
            continue
    if error is not None:
        raise error
