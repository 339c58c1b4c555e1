"""Where the machine code of a kernel comes from, so that Ctrl-C and forks do no harm.

From the user's cache folder (cache.py), which needs LLVM and not Numba; else it is compiled now
(jit.py) and kept there.

A compilation runs in a thread of its own: LLVM cannot be interrupted, and Numba may not recover
from an exception in the middle.  On Ctrl-C the caller goes on at once; the compilation finishes in
the background, and the code is there for the next call.

A fork copies the calling thread alone.  A lock that another thread holds stays locked in the child
for ever, and LLVM's memory is in the state of an unfinished compilation.  So a fork waits until no
thread compiles; if that takes too long, the child remembers that it must not compile.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import hashlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from matchwood._lazy import import_whole
from matchwood.engines.cpu import cache, library
from matchwood.engines.cpu.compiled import (
    Kernel,
    found,
    signature,
    source_hash,
    sources,
)
from matchwood.engines.cpu.cpus import called_function

COMPILE_WAIT_SECONDS = 0.05  # of one wait; on some systems Ctrl-C works only between waits
FORK_SECONDS = 60.0  # that a fork waits for a compilation; the longest one takes 25

_lock = threading.RLock()  # held while a thread imports the compiler, loads code, or compiles
_being_compiled: list[str] = []  # kernels that are being compiled
_compiling: list[float] = []  # seconds that each compilation took
_held: list[Any] = []  # locks that this thread took for a fork
_forked_while_compiling = False  # this process was forked in the middle of a compilation
_engines: list[Any] = []  # LLVM's, each with code that was loaded
origins: collections.Counter[str] = collections.Counter()  # of all code in use, by kernel: where
# it came from, as in "matchwood.io.cpu.read_rows: cache"
met: set[str] = set()  # signatures of all of it that has one


def address_of(kernel: Kernel, values: tuple[Any, ...], *, compiles: bool = True) -> int | None:
    """The address of a kernel's entry for arguments of these types; None if it `compiles` not."""
    folder = cache.cache_folder()  # here, so that its warning appears in the calling thread
    if _forked_while_compiling:
        raise RuntimeError(
            f"{called_function()}: {kernel.__name__} cannot be compiled in this process, which was "
            "forked while another thread compiled; call the function before the fork, or start "
            "processes by 'spawn'"
        )
    addresses: list[int | None] = []

    def task() -> None:
        addresses.append(_made(kernel, values, folder, compiles))

    try:
        _in_own_thread(task, kernel.__name__)
    except Exception as error:
        # the author of a kernel outside the package needs Numba's own message
        if not (_is_from_numba(error) and kernel.__module__.startswith("matchwood.")):
            raise
        kinds = ", ".join(_shown(value) for value in values[1:])
        raise TypeError(
            f"{called_function()}: {kernel.__name__} has no form for arguments of the types {kinds}"
        ) from error
    return addresses[0]


def _is_from_numba(error: Exception) -> bool:
    errors = sys.modules.get("numba.core.errors")
    return errors is not None and isinstance(error, errors.NumbaError)


def _shown(value: Any) -> str:
    return f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__


def _made(
    kernel: Kernel, values: tuple[Any, ...], folder: Path | None, compiles: bool
) -> int | None:
    """The code that came with the package, that of the cache folder, or compiled."""
    # Numba imports modules when it first meets a type, and a child forked in the middle of an
    # import waits for ever.  So this, too, is done under the lock that forks wait for.
    with _lock:
        text = signature(kernel, values)
        if text is None:
            path = None
        else:
            met.add(text)
            files = sources(text)
            address = library.address_of(text, files)
            if address is not None:
                origins[f"{_name(kernel)}: library"] += 1
                return address
            path = folder and _path(folder, kernel, text, files)
        kept = None if path is None else _kept(kernel, path)
        if kept is not None or not compiles:
            return kept
        from matchwood.engines.cpu import jit

        kinds = tuple(map(jit.kind_of_value, values))
        if path is None:
            return _compiled(kernel, kinds, None)
        with cache.alone(path):  # another process may compile it now
            return _kept(kernel, path) or _compiled(kernel, kinds, path)


def _kept(kernel: Kernel, path: Path) -> int | None:
    """The code in a file; None where there is none, or it has any fault."""
    kept = cache.load(path)
    if kept is not None:
        with contextlib.suppress(Exception):
            symbol, _, code = kept.partition(b"\0")
            address = _loaded(symbol.decode(), code)
            origins[f"{_name(kernel)}: cache"] += 1
            return address
    return None


def _compiled(kernel: Kernel, kinds: tuple[Any, ...], path: Path | None) -> int:
    from matchwood.engines.cpu import jit

    begun = time.perf_counter()
    made = jit.compile_kernel(kernel, kinds)
    _compiling.append(time.perf_counter() - begun)
    if path is not None:
        cache.save(path, made.symbol.encode() + b"\0" + made.object)
    origins[f"{_name(kernel)}: compiled"] += 1
    return made.address


def keep(text: str) -> bool:
    """Compile what a signature describes (compiled.py) for later processes; False if it exists."""
    name, *kinds = json.loads(text)
    kernel, files, folder = found(name), sources(text), cache.cache_folder()
    if folder is None or library.address_of(text, files) is not None:
        return False
    path = _path(folder, kernel, text, files)
    with _lock, cache.alone(path):
        if cache.load(path) is not None:
            return False
        from matchwood.engines.cpu import jit

        _compiled(kernel, tuple(map(jit.kind_of, kinds)), path)
    return True


def seconds_compiling() -> float:
    """What all compilations of this process took so far."""
    return sum(_compiling)


def _name(kernel: Kernel) -> str:
    return f"{kernel.__module__}.{kernel.__qualname__}".replace("<", "").replace(">", "")


def _path(folder: Path, kernel: Kernel, text: str, files: set[Path]) -> Path:
    """The file of a kernel's code, named by a hash of all that the code was made from.

    Numba numbers its files through an index; two processes that compile at the same time can then
    take one number for different code.  With hashes there is no such conflict.  A file that is
    damaged, or cannot be written, costs one more compilation and does no other harm.
    """
    key = repr((text, sorted(map(source_hash, files)), _settings()))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    # the function's name is for human readers; the digest alone would be enough
    return folder / f"{_name(kernel)}.{digest}.code"


@functools.cache
def _settings() -> tuple[Any, ...]:
    """The compiler, its settings, and the machine that it compiles for."""
    binding = import_whole("llvmlite.binding")
    config = Path(library.CONFIG_FILE)
    return (
        *map(version, ("numba", "llvmlite", "numpy")),
        sys.version,
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_")),
        config.read_bytes() if config.is_file() else b"",
    )


def _loaded(symbol: str, code: bytes) -> int:
    """The address of an entry in machine code, a file of objects; LLVM fits it into memory."""
    binding = import_whole("llvmlite.binding")
    if not _engines:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    address: int = engine.get_function_address(symbol)
    if not address:
        raise ValueError(symbol)
    return address


def _in_own_thread(task: Callable[[], object], name: str) -> None:
    """Run the task in a thread of its own, and wait for it so that Ctrl-C works."""
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        error: BaseException | None = None
        _being_compiled.append(name)
        try:
            task()
        except BaseException as caught:
            error = caught
        _being_compiled.remove(name)
        outcome.put(error)

    try:
        if _compiles_here():  # if this thread has the compiler's lock, another would wait for ever
            raise RuntimeError
        threading.Thread(target=work, daemon=True, name="matchwood compiler").start()
    except RuntimeError:  # or no thread can be started
        work()
    while True:
        try:
            error = outcome.get(timeout=COMPILE_WAIT_SECONDS)
            break
        except queue.Empty:
            continue
    if error is not None:
        raise error


def _compiles_here() -> bool:
    locks = sys.modules.get("numba.core.compiler_lock")
    return locks is not None and bool(locks.global_compiler_lock.is_locked())


def _locks() -> list[Any]:
    """In the order in which they are taken: ours, Numba's, LLVM's."""
    found: list[Any] = [_lock]
    numba, llvm = map(sys.modules.get, ("numba.core.compiler_lock", "llvmlite.binding.ffi"))
    for wrapper in (getattr(numba, "global_compiler_lock", None), getattr(llvm, "lib", None)):
        lock = getattr(wrapper, "_lock", None)  # LLVM's is a lock inside a lock
        lock = getattr(lock, "_lock", lock)
        if lock is not None:
            found.append(lock)
    return found


def _before_fork() -> None:
    global _all_held
    _all_held = False
    for lock in _locks():
        if not lock.acquire(timeout=FORK_SECONDS):
            return
        _held.append(lock)
    _all_held = True


_all_held = True


def _after_fork() -> None:
    mine = _held[::-1]
    _held.clear()  # before the release: then another thread that forks may fill it
    for lock in mine:
        lock.release()


def _after_fork_in_child() -> None:
    global _forked_while_compiling
    _being_compiled.clear()
    if not _all_held:
        _forked_while_compiling = True
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


@atexit.register
def _let_compilations_end() -> None:
    """Wait for compilations: LLVM frees its memory at exit, and must not be using it then."""
    if _being_compiled:
        _lock.acquire(timeout=FORK_SECONDS)
