"""The GPU engine's host code without a GPU: CuPy played by NumPy, some kernels compiled by g++.

The kernels of traffic/gpu.cu are played by NumPy too: blocks of several warps do not run on the
host.  Copies and kernels run at once, so the order of streams is not tested here; the logic is.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import beyond_on_host
from beyond_on_host import Array, Event, Stream, empty
from matchwood import engines
from matchwood.applications.sensing.statistics.gpu import batches as rounds
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.primitives.scan import gpu as scan

_one_at_a_time = threading.Lock()  # the warp on the host is one for all threads


class _Stream(Stream):
    id = 0

    def record(self) -> Event:
        return Event()


def there(array: Any) -> Any:
    return np.ascontiguousarray(array).view(Array)


class _Cupy:
    """Functions of NumPy whose arrays count as arrays of a device."""

    empty = staticmethod(empty)

    def __init__(self) -> None:
        runtime = SimpleNamespace(
            memcpyDefault=4,
            memcpyAsync=lambda to, source, nbytes, kind, stream: ctypes.memmove(to, source, nbytes),
            getDevice=lambda: 0, getDeviceCount=lambda: 1, memGetInfo=lambda: (1 << 40, 1 << 40),
        )  # fmt: skip
        self.cuda = SimpleNamespace(
            runtime=runtime, memory=SimpleNamespace(OutOfMemoryError=MemoryError),
            Stream=lambda **options: _Stream(), Device=lambda *number: _Stream(),
            get_current_stream=_Stream, using_allocator=contextlib.nullcontext,
        )  # fmt: skip
        zero = lambda **options: 0  # noqa: E731
        pool = SimpleNamespace(
            free_bytes=zero, get_limit=zero, used_bytes=zero, free_all_blocks=zero
        )
        self.get_default_memory_pool = lambda: pool

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            made = getattr(np, name)(*args, **options)
            return made.view(Array) if isinstance(made, np.ndarray) else made

        return call


def _kernels(source: Any, **types: Any) -> Any:
    """Kernels that threads launch one after the other."""
    wanted = tuple(sorted((name, np.dtype(kind).name) for name, kind in types.items()))

    class Locked:
        def __getattr__(self, name: str) -> Any:
            def launch(*args: Any) -> None:
                with _one_at_a_time:
                    getattr(beyond_on_host.library(source, wanted), name)(*args)

            return launch

    return Locked()


def _heads(keys: Any, shift: int = 0, kind: Any = None) -> Any:
    upper = keys >> keys.dtype.type(shift)
    first = np.ones(upper.size, bool)
    first[1:] = upper[1:] != upper[:-1]
    starts = np.flatnonzero(first).astype(np.uint32)
    return there(starts), there(upper[first].astype(kind or keys.dtype))


def _links_of_sorted(keys: Any) -> Any:
    starts, values = _heads(keys)
    sources, _ = _heads(keys, 32)
    first = np.searchsorted(starts, sources).astype(np.uint32)
    return links.Links(starts, there(values.astype(np.uint32)), sources, there(first))


def _gaps(starts: Any, end: int, kind: Any = np.int64) -> Any:
    return there(np.diff(np.append(starts.astype(np.int64), end)).astype(kind))


def _run_sums(starts: Any, end: int, values: Any) -> Any:
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return there(np.diff(sums[np.append(starts.astype(np.int64), end)]))


def _largest_value(numbers: Any) -> Any:
    return there(np.array([numbers.max(), (numbers == numbers.max()).sum()], np.uint64))


class _TrafficKernels:
    def add_extras(self, threads: int, args: Any) -> None:
        _, destinations, counts, _, values, packets = args
        place = np.searchsorted(values, destinations)
        np.add.at(packets, place, (counts - 1).astype(np.uint64))

    def write_sources(self, threads: int, args: Any) -> None:
        _, keys, starts, sources = args
        sources[:] = (keys[starts] >> np.uint64(32)).astype(np.uint32)


def _without_memory(self: Any, nbytes: int, what: str) -> None:
    self.overflowed, self.malloc = False, None


@contextlib.contextmanager
def on_host(*sources: Any) -> Any:
    """Within, ``engine="gpu"`` of batches and sliding windows runs on the host."""
    played = {
        "packed": lambda src, dst: there(src.astype(np.uint64) << np.uint64(32) | dst),
        "heads": _heads,
        "head_places": lambda keys, shift: (None, _heads(keys, shift)[0].size),
        "links_of_sorted": _links_of_sorted,
        "gaps": _gaps,
        "run_sums": _run_sums,
        "largest_value": _largest_value,
        "largest_gap": lambda starts, end: _largest_value(_gaps(starts, end)),
        "kernels": lambda *args, **types: _TrafficKernels(),
    }
    with contextlib.ExitStack() as stack:
        cupy = _Cupy()
        changes = [(links, name, function) for name, function in played.items()]
        changes += [
            (rounds, "pinned", np.empty),
            (engines, "cupy", lambda: cupy),
            (scan, "scan_into", None),
            (rounds.Arena, "__init__", _without_memory),
            (links.SOURCE, "kernels", lambda **types: _TrafficKernels()),
        ]
        changes += [
            (source, "kernels", lambda source=source, **types: _kernels(source, **types))
            for source in sources
        ]
        for owner, name, value in changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield
