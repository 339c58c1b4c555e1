"""Graphs larger than the GPU: how long it takes.  The parts of traffic.py for a GPU.

    pass        T, one copy of indices and data from pinned memory in large pieces; then the first
                pass and the whole matching at a quarter of the graph, and in 3, 5, 10, 40 batches
    once        a graph that is not pinned
    components  in units of a copy of indices
    resident    the graph stays on the device: one partition, and four
    scaling     batches 1, 3, 5, 10 on 1, 2, 4, 8 partitions of one device, with lists and without
                (figures 4.4 and 4.6 of the thesis), and the parts of the time (4.5 and 4.7)
    cpu         the same matching by the threads of the host
    best        large graphs that are on the device, by the best method
    counts      graph sizes that travel, of other graphs: a mesh 128^3, a factor of R-MAT 22
    above       a mesh with more than 2^31 entries under a limit of memory

Graphs are made on the GPU, with uniform weights in float32, and moved to the host.
"""

from __future__ import annotations

import functools
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import matchwood
from matchwood import Devices, engines, generators
from matchwood.engines.cpu import default_threads
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices import machine as machines
from matchwood.matching import is_locally_dominant
from matchwood.matching.dominant import devices as rounds

EDGE_FACTOR = 16
REPEATS = 5
Row = dict[str, Any]
BARS = {
    "first pass, a quarter": 1.04, "first pass": 1.07, "whole, a quarter": 1.3, "once": 2.5,
    "components": 0.8, "resident, 1": 1.1, "resident, 4": 1.6, "R-MAT 26": 0.040,
    "RAND 26": 0.060, "words of 4 partitions": 2.0, "sizes": 1.2, "sizes of a factor": 1.4,
    "sizes of components": 0.1, "above": 1.0,
}  # fmt: skip


def tell(rows: list[Row], what: str, graph: str, value: float, bar: str = "", **more: Any) -> None:
    """Add a figure, and print it."""
    row: Row = {"what": what, "graph": graph, "value": value, **more}
    told = ""
    if bar:
        row["bar"] = BARS[bar]
        told = f", bar {BARS[bar]:g} {'met' if value <= BARS[bar] else 'MISSED'}"
    rows.append(row)
    shown = {key: one for key, one in more.items() if not isinstance(one, (dict, list))}
    notes = ", ".join(
        f"{k} {one:.4g}" if isinstance(one, float) else f"{k} {one}" for k, one in shown.items()
    )
    print(f"{graph}: {what} {value:.4g}{told}  {notes}", flush=True)


def median_seconds(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median of several calls, the first one not counted."""
    call()
    times = []
    for _ in range(repeats):
        engines.cupy().cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        engines.cupy().cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rmat(scale: int) -> Any:
    """On the device, prepared."""
    return matchwood.graph(
        generators.rmat(scale, EDGE_FACTOR, weights="uniform", rng=1, engine="gpu")
    )


def rand(scale: int) -> Any:
    """As many vertices and edges, drawn uniformly."""
    n = 1 << scale
    drawn = generators.erdos_renyi(n, EDGE_FACTOR * n, weights="uniform", rng=1, engine="gpu")
    return matchwood.graph(drawn)


def mesh(side: int) -> Any:
    """27 points, uniform weights."""
    return matchwood.graph(
        generators.random_weights(generators.mesh((side,) * 3, engine="gpu"), rng=1)
    )


def on_host(G: Any) -> Any:
    """The same on the host; the device is free again."""
    there = G.on("cpu")
    there.undirected_weights()
    del G
    gc.collect()
    engines.cupy().get_default_memory_pool().free_all_blocks()
    return there


def bytes_of(G: Any) -> int:
    """Of indices and data, as they travel."""
    view = G.undirected_weights()
    return int(view.nnz) * (4 + view.data.itemsize)


def copy_seconds(*arrays: Any) -> float:
    """T: one copy from pinned memory, in large pieces, nothing else."""
    cupy = engines.cupy()
    there = [cupy.empty(array.shape, array.dtype) for array in arrays]
    for array in arrays:
        cupy.cuda.runtime.hostRegister(array.ctypes.data, array.nbytes, 0)

    def copy() -> None:
        stream = cupy.cuda.get_current_stream()
        for target, array in zip(there, arrays, strict=True):
            target.data.copy_from_host_async(array.ctypes.data, array.nbytes, stream)
        stream.synchronize()

    try:
        return median_seconds(copy)
    finally:
        for array in arrays:
            cupy.cuda.runtime.hostUnregister(array.ctypes.data)


def matching(G: Any, **options: Any) -> Any:
    """A call on one device, or on several partitions of it."""
    engine = Devices((0,) * options.pop("partitions", 1), **options)
    return matchwood.weighted_matching(G, engine=engine)


def assert_right(G: Any, found: Any) -> None:
    """The mates are those of the suitor method on the GPU."""
    expected = matchwood.weighted_matching(G, method="suitor", engine="gpu")
    if (found.mate != expected.mate).any():
        raise AssertionError("other mates than suitor's")


def passes(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """The first pass and the whole matching, in units of T."""
    for batches in (None, 3, 5, 10, 40):
        options: Row = {"batches": batches}
        if batches is None:
            options["memory"] = bytes_of(G) // 4
        call = functools.partial(matching, G, **options)
        found = call()
        assert_right(G, found)
        timed = [matching(G, stats=True, **options).stats for _ in range(REPEATS)]
        first = statistics.median(one.first_pass for one in timed)
        stats = timed[-1]
        shape = {"batches": stats.batches[0], "lists": stats.lists, "sizes": stats.graph_sizes}
        quarter = batches is None
        bar = "first pass, a quarter" if quarter else "first pass"
        tell(rows, "first pass, in T", name, first / T, bar, **shape)
        if quarter:
            tell(rows, "graph sizes of a matching, memory 1/4", name, stats.graph_sizes, "sizes")
        bar = "whole, a quarter" if quarter else ""
        tell(rows, "whole matching, in T", name, median_seconds(call, 5) / T, bar, **shape,
             travelled=found.stats.graph_sizes, phases=stats.seconds(), rounds=len(stats.rounds),
             by_round=[one.seconds for one in stats.rounds])  # fmt: skip
        print("   ", {k: round(1e3 * v, 2) for k, v in stats.seconds().items()}, "ms", flush=True)


def once(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """Not pinned before the call, nor after it.  The gate is not part of it."""
    pinned = G.undirected_weights()  # by other parts
    view = type(pinned)(*(array.copy() for array in pinned))

    def call() -> Any:
        machine = machines.require(Devices(memory=bytes_of(G) // 4), "bench")
        return rounds.match(view, 0, True, machine=machine)

    assert_right(G, call())
    tell(rows, "whole matching, not pinned, in T", name, median_seconds(call, 3) / T, "once")


def on_cpu(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """The same by the threads of the host."""
    seconds = median_seconds(lambda: matchwood.weighted_matching(G, engine="cpu"), 3)
    tell(rows, "whole matching on the CPU, in T", name, seconds / T, threads=default_threads())


def components(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """In units of the time of copying indices."""
    share = 4 / (4 + G.undirected_weights().data.itemsize)
    engine = Devices(batches=4)
    seconds = median_seconds(lambda: matchwood.connected_components(G, engine=engine))
    stats = matchwood.connected_components(G, engine=Devices(batches=4, stats=True)).stats
    tell(rows, "components, in copies of indices", name, seconds / (share * T), "components",
         phases=stats.seconds())  # fmt: skip
    tell(rows, "graph sizes of components", name, stats.graph_sizes, "sizes of components")
    print("   ", {k: round(1e3 * v, 2) for k, v in stats.seconds().items()}, "ms", flush=True)


def resident(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """The graph is on the device, and so is the answer; against the usual engine there."""
    there = G.on("gpu")
    usual = functools.partial(matchwood.weighted_matching, there, method="dominant")
    base = median_seconds(usual)
    tell(rows, "dominant on the GPU, ms", name, 1e3 * base)
    on_host = functools.partial(matching, G)
    tell(rows, "resident, called from the host, ms", name, 1e3 * median_seconds(on_host))
    for partitions in (1, 4):
        call = functools.partial(matching, there, partitions=partitions)
        assert_right(there, call())
        seconds = median_seconds(call)
        stats = matching(there, partitions=partitions, stats=True).stats
        tell(rows, f"{partitions} resident, of dominant", name, seconds / base,
             f"resident, {partitions}", lists=stats.lists, sizes=stats.graph_sizes,
             phases=stats.seconds())  # fmt: skip
        print("   ", {k: round(1e3 * v, 2) for k, v in stats.seconds().items()}, "ms", flush=True)


def scaling(G: Any, name: str, T: float, rows: list[Row]) -> None:
    """Figures 4.4 to 4.7: partitions, batches, with lists and without."""
    for partitions in (1, 2, 4, 8):
        for batches in (1, 3, 5, 10):
            for lists in ("auto", 0):
                options: Row = {"partitions": partitions, "batches": batches, "lists": lists}
                if partitions == 1 and batches == 1:
                    matching(G, **options)
                start = time.perf_counter()
                stats = matching(G, stats=True, **options).stats
                passed = time.perf_counter() - start
                bar = "words of 4 partitions" if partitions == 4 and lists == "auto" else ""
                words = stats.words_exchanged / G.n
                tell(rows, "scaling, words in n", name, words, bar, **options, seconds=passed,
                     sizes=stats.graph_sizes, phases=stats.seconds(),
                     touched=[one.entries / stats.entries for one in stats.rounds])  # fmt: skip


def counts(rows: list[Row]) -> None:
    """Graph sizes that travel at half of the graph's size, and how long it takes."""
    G = on_host(mesh(128))
    stats = matching(G, memory=bytes_of(G) // 2).stats
    tell(rows, "graph sizes of a matching, memory 1/2", "mesh 128^3", stats.graph_sizes, "sizes",
         lists=stats.lists, batches=stats.batches[0])  # fmt: skip
    G = on_host(rmat(22))
    engine = Devices(memory=bytes_of(G) // 2)
    found = matchwood.degree_factor(G, 2, engine=engine)
    expected = matchwood.degree_factor(G, 2, engine="gpu")
    if (found.neighbours != engines.moved(expected.neighbours, "cpu")).any():
        raise AssertionError("another factor than that of one device")
    tell(rows, "graph sizes of factor(n=2, M=5), memory 1/2", "R-MAT 22", found.stats.graph_sizes,
         "sizes of a factor", lists=found.stats.lists)  # fmt: skip


def best(scales: tuple[int, ...], rows: list[Row], methods: tuple[str, ...]) -> None:
    """Graphs on the device, by each method."""
    for name, make in (("R-MAT", rmat), ("RAND", rand)):
        for scale in scales:
            G = make(scale)
            for method in methods:
                call = functools.partial(matchwood.weighted_matching, G, method=method)
                seconds = median_seconds(call)
                found = call()
                graph = f"{name} {scale}"
                bar = graph if graph in BARS and method == "suitor" else ""
                tell(rows, f"{method}, seconds", graph, seconds, bar, entries=G.nnz,
                     matched_per_second=found.cardinality / seconds)  # fmt: skip
            del G, call, found
            gc.collect()
            engines.cupy().get_default_memory_pool().free_all_blocks()


def above(side: int, limit: str, rows: list[Row]) -> None:
    """More than 2^31 entries; the peak of the pool by a hook; the answer checked."""
    cupy = engines.cupy()

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]
        name, most, used = "most used", 0, 0

        def malloc_postprocess(self, **told: Any) -> None:
            self.used += told["mem_size"]
            self.most = max(self.most, self.used)

        def free_postprocess(self, **told: Any) -> None:
            self.used -= told["mem_size"]

    name = f"mesh {side}^3"
    there = mesh(side)
    view = type(there.undirected_weights())(*map(brought, there.undirected_weights()))
    hook = Hook()
    with hook:
        machine = machines.require(Devices(memory=limit, stats=True), "bench")
        stats = rounds.match(view, 0, True, machine=machine).stats
    start = time.perf_counter()  # the kernels are compiled by now
    machine = machines.require(Devices(memory=limit), "bench")
    found = rounds.match(view, 0, True, machine=machine)
    passed = time.perf_counter() - start
    tell(rows, "peak of the limit", name, hook.most / machine.limits[0], "above",
         entries=int(view.nnz), seconds=passed, sizes=stats.graph_sizes, lists=stats.lists,
         batches=stats.batches[0], first_pass=stats.first_pass, pinned=stats.pinned)  # fmt: skip
    mate = cupy.asarray(found.mate)
    same = bool((mate == matchwood.weighted_matching(there, method="suitor").mate).all())
    tell(rows, "mates of suitor", name, float(same))
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()  # the check takes most of the device's memory
    right = is_locally_dominant(there, mate)
    tell(rows, "is locally dominant", name, float(right))


def brought(array: Any) -> Any:
    """A large array of the device on the host, where it is not pinned."""
    cupy = engines.cupy()
    target = cpu_copies.touched(array.size, array.dtype, None)
    cupy.cuda.runtime.hostRegister(target.ctypes.data, target.nbytes, 0)
    array.data.copy_to_host(target.ctypes.data, target.nbytes)
    cupy.cuda.runtime.hostUnregister(target.ctypes.data)
    return target


PARTS: dict[str, Callable[[Any, str, float, list[Row]], None]] = {
    "pass": passes, "once": once, "components": components, "resident": resident,
    "scaling": scaling, "cpu": on_cpu,
}  # fmt: skip


def timed(
    scale: int, parts: tuple[str, ...], rows: list[Row], save: Callable[[], None], seconds: float
) -> None:
    """The parts in turn; each one that ends is saved.  None begins after so many seconds."""
    began = time.perf_counter()
    asked = [part for part in parts if part in PARTS]
    if asked:
        start = time.perf_counter()
        G, name = on_host(rmat(scale)), f"R-MAT {scale}"
        view = G.undirected_weights()
        T = copy_seconds(view.indices, view.data)
        tell(rows, "T, ms", name, 1e3 * T, bytes=bytes_of(G), made=time.perf_counter() - start,
             gigabytes_per_second=bytes_of(G) / T / 1e9)  # fmt: skip
    for part in asked:
        if time.perf_counter() - began > seconds:
            print(f"{part}: no time left", flush=True)
            continue
        start = time.perf_counter()
        PARTS[part](G, name, T, rows)
        print(f"  {part}: {time.perf_counter() - start:.1f} s", flush=True)
        save()
    if asked:
        del G, view
        gc.collect()
        engines.cupy().get_default_memory_pool().free_all_blocks()
    if "counts" in parts:
        counts(rows)
        save()
    if "best" in parts:
        best((scale, 26) if scale < 26 else (26,), rows, ("suitor", "dominant"))
        save()
    if "above" in parts:
        above(440, "16 GiB", rows)
        save()
