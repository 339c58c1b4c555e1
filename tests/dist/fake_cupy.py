"""CuPy made of NumPy, for graphs that are spread over ranks with GPUs.

An array of this module is no NumPy array.  So what a real GPU refuses is refused here too: an array
of the device in a kernel of the CPU, arrays of both sides in one operation, an index on the host,
and a copy that nobody asked for.  Functions that the real CuPy lacks are missing, if it is
installed.

Of our own code for GPUs the host's side runs: the steps of ranks in dist.py's folders.  Their CUDA
kernels are compiled for the host (`Compiled`), or played by the loops below.  All that one machine
does on a GPU is done by its CPU engine behind the scenes (`Played`).
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import beyond_on_host
from matchwood import engines

HOST = "the array lies on the host"
OWN = (
    "communities.propagation.ranks", "matching.dominant.ranks", "spanning.forest.ranks",
    "ranking.ranks", "traversal.breadth_first.ranks", "components.connected.ranks",
    "engines.ranks.exchanges", "gate.distributed",
)  # fmt: skip
"""Packages whose files for GPUs run as they are."""


def real_cupy() -> Any:
    """The real module, to ask what it has; None where it is not installed."""
    return importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None


def lowered(thing: Any) -> Any:
    """NumPy's arrays in place of the device's; an array of the host is refused."""
    if isinstance(thing, ndarray):
        return thing._a
    if isinstance(thing, np.ndarray):
        raise TypeError(f"Unsupported type {type(thing)}: {HOST}")
    if isinstance(thing, (list, tuple)):
        return type(thing)(lowered(each) for each in thing)
    return thing


def raised(thing: Any) -> Any:
    """Arrays of the device in place of NumPy's; so are single numbers."""
    if isinstance(thing, (np.ndarray, np.generic)):
        return ndarray._of(np.asarray(thing))
    if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
        return type(thing)(raised(each) for each in thing)
    return thing


def _operator(name: str) -> Any:
    def call(self: Any, *others: Any) -> Any:
        return raised(getattr(self._a, name)(*(lowered(other) for other in others)))

    return call


class ndarray:
    """An array that lies on the device."""

    __hash__ = None  # type: ignore[assignment]
    __cuda_array_interface__ = None  # by this one knows an array of a GPU

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        self._a = np.empty(shape, dtype)

    @staticmethod
    def _of(array: Any) -> ndarray:
        made = object.__new__(ndarray)
        made._a = array
        return made

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed: use get()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        found = getattr(ufunc, method)(*map(lowered, inputs), **_lowered_options(options))
        return raised(found)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return getattr(sys.modules["cupy"], function.__name__)(*args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # NumPy asks for ways to the memory
        found = getattr(object.__getattribute__(self, "_a"), name)
        if not callable(found):
            return found if name in ("dtype", "shape", "flags", "strides") else _plain(found)
        return lambda *args, **options: raised(
            found(*(lowered(each) for each in args), **_lowered_options(options))
        )

    def __getitem__(self, where: Any) -> Any:
        return raised(self._a[lowered(where)])

    def __setitem__(self, where: Any, values: Any) -> None:
        self._a[lowered(where)] = lowered(values)

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        return (raised(each) for each in self._a)

    def __int__(self) -> int:
        return int(self._a)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._a)

    def __bool__(self) -> bool:
        return bool(self._a)

    def __format__(self, how: str) -> str:
        return format(self._a if self._a.ndim else self._a[()], how)

    def __repr__(self) -> str:
        return f"device {self._a!r}"

    def get(self, out: Any = None) -> Any:
        """A copy on the host."""
        if out is None:
            return self._a.copy()
        out[...] = self._a
        return out

    def tolist(self) -> Any:
        return self._a.tolist()

    def item(self) -> Any:
        return self._a.item()


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
    "rshift",
):  # fmt: skip
    for _form in (f"__{_name}__", f"__r{_name}__", f"__i{_name}__"):
        setattr(ndarray, _form, _operator(_form))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "abs"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def _plain(found: Any) -> Any:
    return raised(found) if isinstance(found, np.ndarray) else found


def _lowered_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: lowered(value) for name, value in options.items()}


class Cupy(ModuleType):
    """The module."""

    ndarray = ndarray

    def __init__(self, real: Any) -> None:
        super().__init__("cupy")
        self._real = real
        stream = SimpleNamespace(synchronize=lambda: None, ptr=0)
        memory = SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {}))
        runtime = SimpleNamespace(memGetInfo=lambda: (self.free, 1 << 40))
        self.free = 1 << 40  # bytes of the device
        self.cuda = SimpleNamespace(
            memory=memory, runtime=runtime, get_current_stream=lambda: stream
        )

    @staticmethod
    def asarray(array: Any, dtype: Any = None) -> Any:
        """The host's arrays may come here, and only here."""
        given = array._a if isinstance(array, ndarray) else np.array(array)
        return raised(np.asarray(given, dtype))

    array = asarray

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_bytes=lambda: 0, get_limit=lambda: 0)

    def repeat(self, array: Any, counts: Any) -> Any:
        if isinstance(counts, ndarray):
            raise ValueError("cupy.repeat takes lists")
        return raised(np.repeat(lowered(array), lowered(counts)))

    def __getattr__(self, name: str) -> Any:
        if self._real is not None and not hasattr(self._real, name):
            raise AttributeError(f"cupy has no {name}")
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return _Function(found)


class _Function:
    """A function of NumPy, or a ufunc, on arrays of the device."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        lowered_args = (lowered(each) for each in args)
        return raised(self._function(*lowered_args, **_lowered_options(options)))

    def at(self, *args: Any) -> None:
        self._function.at(*(lowered(each) for each in args))


class Played:
    """The engine of one machine for GPUs: that for CPUs, with arrays brought there and back."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)

        def call(*args: Any, **options: Any) -> Any:
            return _lifted(function(*map(_brought, args), **options))

        return call


def _brought(thing: Any) -> Any:
    if isinstance(thing, tuple):
        parts = [_brought(each) for each in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    return thing._a if isinstance(thing, ndarray) else thing


def _lifted(thing: Any) -> Any:
    if isinstance(thing, tuple):
        parts = [_lifted(each) for each in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    return raised(thing) if isinstance(thing, np.ndarray) else thing


# The CUDA kernels of ranks


_one_at_a_time = threading.Lock()  # the warp on the host is one for all ranks


class Compiled:
    """In place of a `gpu.Source`: its kernels, compiled by g++, on arrays of this module."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def kernels(self, **types: Any) -> Any:
        wanted = tuple(sorted((name, np.dtype(kind).name) for name, kind in types.items()))

        class Launched:
            def __getattr__(_, name: str) -> Any:
                def launch(threads: Any, args: Any, **options: Any) -> None:
                    given = [_on_host(each) for each in args]
                    with _one_at_a_time:
                        found = beyond_on_host.library(self._source, wanted)
                        getattr(found, name)(threads, given, **options)

                return launch

        return Launched()


def _on_host(thing: Any) -> Any:
    return thing._a.view(beyond_on_host.Array) if isinstance(thing, ndarray) else thing


class Block:
    """Of components/connected/ranks: the kernels of one machine need large blocks."""

    def __init__(self, view: Any) -> None:
        self._indptr, self._indices = _brought(view.indptr), _brought(view.indices)
        self._rows = np.repeat(np.arange(view.n), np.diff(self._indptr)).astype(view.indices.dtype)
        self.parent = raised(np.arange(view.n, dtype=view.indices.dtype))
        self.largest = raised(np.full(1, -1, view.indices.dtype))

    def _join(self, entries: Any) -> None:
        from matchwood.primitives.union_find.cpu import union_find

        old = self.parent._a
        pairs = ((self._rows[entries], self._indices[entries]), (np.arange(old.size), old))
        ends = (np.concatenate(each).astype(old.dtype) for each in zip(*pairs, strict=True))
        old[:] = union_find(old.size, *ends)

    def sample(self) -> None:
        full = np.diff(self._indptr) > 0
        self._join(self._indptr[:-1][full])
        if full.any():
            self.largest._a[0] = np.bincount(self.parent._a[np.flatnonzero(full)]).argmax()

    def join_rest(self, symmetric: bool) -> None:
        read = self.parent._a[self._rows] != self.largest._a[0]
        self._join(np.flatnonzero(read) if symmetric else np.arange(self._rows.size))

    def flatten(self) -> None:
        self._join(np.arange(0))


def _without_tiles(*args: Any, tiles: Any, **options: Any) -> Any:
    from matchwood.primitives.row_reduce import cpu

    return _lifted(cpu.spmv(*map(_brought, args), **options))


def first_entries(rows: Any, order: Any, n_rows: int, threads: Any) -> Any:
    """Of spanning/forest/ranks."""
    from matchwood.spanning.forest.ranks import cpu

    return raised(cpu.first_entries(_brought(rows), order, n_rows, threads))


def offer(a: Any, b: Any, best: Any) -> None:
    """Of spanning/forest/ranks."""
    for ends in (a._a, b._a):
        np.minimum.at(best._a, ends, np.arange(ends.size, dtype=np.uint64))


def _follow(threads: int, args: Any) -> None:
    """Of traversal/breadth_first/ranks."""
    size, *arrays = args
    frontier, indptr, indices, names, level, when, best, found, tail = map(lowered, arrays)
    for u in frontier[:size].tolist():
        for v in indices[indptr[u] : indptr[u + 1]].tolist():
            if when[v] < 0:
                when[v], found[tail[0]] = level, v
                tail[0] += 1
            if when[v] == level:
                best[v] = min(best[v], names[u])


def _search(threads: int, args: Any) -> None:
    size, *arrays = args
    indptr, indices, frontier, names, level, when, best = map(lowered, arrays)
    for v in np.flatnonzero(when[:size] < 0).tolist():
        columns = indices[indptr[v] : indptr[v + 1]]
        inside = columns[frontier[columns] != 0]
        if inside.size:
            when[v], best[v] = level, names[inside[0]]


def play(monkeypatch: Any) -> None:
    """Until the end of the test there is a GPU; ranks that are threads may use it."""
    from matchwood.components.connected.ranks import gpu as joining
    from matchwood.gate.distributed import gpu as whole
    from matchwood.matching.dominant.ranks import gpu as matching
    from matchwood.ranking.ranks import gpu as ranking
    from matchwood.spanning.forest.ranks import gpu as spanning
    from matchwood.traversal.breadth_first.ranks import gpu as searching

    module = Cupy(real_cupy())
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(engines, "_cupy_or_reason", lambda: (module, ""))
    load = engines.load

    def loaded(package: str, engine: str) -> Any:
        own = package.removeprefix("matchwood.") in OWN
        return load(package, engine) if own or engine != "gpu" else Played(load(package, "cpu"))

    monkeypatch.setattr(engines, "load", loaded)
    for engine in (matching, joining, whole):
        monkeypatch.setattr(engine, "SOURCE", Compiled(engine.SOURCE))
    monkeypatch.setattr(joining, "Block", Block)
    monkeypatch.setattr(ranking, "SOURCE", Compiled(ranking.SOURCE))
    rows = SimpleNamespace(Tiles=lambda indptr, size: None, spmv=_without_tiles)
    monkeypatch.setattr(ranking, "row_reduce", rows)
    monkeypatch.setattr(spanning, "first_entries", first_entries)
    monkeypatch.setattr(spanning, "offer", offer)
    kernels = SimpleNamespace(follow_rows=_follow, search_rows=_search)
    monkeypatch.setattr(searching, "SOURCE", SimpleNamespace(kernels=lambda **types: kernels))
