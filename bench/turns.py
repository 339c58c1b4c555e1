"""Did anything become slower?  Every public function of two trees, timed in turns.

python -m bench.turns --old COMMIT       a commit against this tree; `make turns OLD=COMMIT`
python -m bench.turns                    this tree against the record of this kind of machine
python -m bench.turns --record           the same, and this run becomes the record
python -m bench.turns --old COMMIT --first    the first call of each function in a new process
python -m bench.turns --old COMMIT --engine ranks    what runs on ranks, on two of this host

Each turn is a process of its own, the old tree and the new one after each other, so that noise and
drift hit both.  A time is the best of the turns' medians.  Integers of the answers are compared,
too.  The exit code is 1 where a quotient is above the limit, an answer differs, or a function
fails that did not: look before you believe it, and repeat with ``--only``.

A record holds times as multiples of a copy of 64 MiB that was timed in the same process; so it may
be compared with a run on another machine of the same kind, and the limit is wider.

CASES has an entry for every problem of the registry, which a test requires, and for what all calls
go through: the gate, the files, the generators.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "records"
LIMITS = {"tree": 1.10, "record": 1.30}
SECONDS, MOST = 0.4, 25  # a function is called for this long, or this often, and once at least
RANKS = 2
COPIED = 64 << 20  # bytes

Calls = Iterator[tuple[str, Callable[[], Any]]]


# Inputs, made by NumPy alone: the same for both trees.


class Inputs:
    """What the cases read, on the engine that is timed; ranks have a communicator."""

    def __init__(
        self, mw: Any, engine: str, threads: int, scale: int, folder: str, comm: Any = None
    ) -> None:
        import numpy as np

        self.mw, self.np, self.scale, self.folder = mw, np, scale, Path(folder)
        self.gpu, self.comm = engine == "gpu", comm
        self.on: dict[str, Any] = {} if self.gpu else {"threads": threads}
        self.size = max(1 << (17 + scale), 1 << 8)  # of arrays
        self.name, self.A, self.G = "arrays", None, None  # the graph of the moment

    def here(self, array: Any) -> Any:
        """An array where the engine reads it."""
        if not self.gpu:
            return array
        import cupy

        return cupy.asarray(array)

    def take(self, name: str, A: Any) -> None:
        """Go on with this graph."""
        if self.gpu:
            import cupyx.scipy.sparse as cs

            parts = tuple(self.here(x) for x in (A.data, A.indices, A.indptr))
            A = cs.csr_matrix(parts, shape=A.shape)
        self.name = name
        if self.comm is None:
            self.A, self.G = A, self.mw.graph(A)
        else:  # each rank has some of the rows
            ranks, me = self.comm.size, self.comm.rank
            self.A = A[A.shape[0] * me // ranks : A.shape[0] * (me + 1) // ranks]
            self.G = self.mw.distribute(self.A, comm=self.comm)

    @functools.cached_property
    def packets(self) -> tuple[Any, Any]:
        draws = (self.np.random.default_rng(seed) for seed in (1, 2))
        return tuple(
            self.here((draw.random(self.size) ** 3 * 2**32).astype("uint32")) for draw in draws
        )

    @functools.cached_property
    def traffic(self) -> Any:
        return self.mw.traffic_matrix(*self.packets, **self.on)

    @functools.cached_property
    def sets(self) -> list[list[str]]:
        words = self.np.random.default_rng(3).zipf(1.3, int(4000 * 2.0**self.scale))
        names = [f"w{i}" for i in (words % 5000).tolist()]
        return [sorted(set(names[i : i + 6])) for i in range(0, len(names) - 6, 6)]

    @functools.cached_property
    def capture(self) -> Path:
        sensing, np = self.mw.sensing, self.np
        src, dst = (self.np.asarray(x if not self.gpu else x.get()) for x in self.packets)
        number = np.arange(src.size)
        sent = sensing.Packets(src, dst, number, src * 0 + 60, number.astype(np.uint8))
        sensing.write_capture(self.folder / "a.pcap", sent)
        return self.folder / "a.pcap"


def graphs(scale: int) -> Iterator[tuple[str, Any]]:
    """R-MAT, a grid and a 27-point mesh with random weights; each step of `scale` doubles them."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(1)

    def symmetric(u: Any, v: Any, n: int) -> Any:
        low, high = np.minimum(u, v)[u != v], np.maximum(u, v)[u != v]
        low, high = np.divmod(np.unique(low.astype(np.int64) * n + high), n)
        w = (rng.random(low.size) + 1e-3).astype(np.float32)
        ends = np.r_[low, high], np.r_[high, low]
        A = sp.csr_array(sp.coo_array((np.r_[w, w], ends), shape=(n, n)))
        A.sort_indices()
        A.indptr, A.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        return A

    levels = 16 + scale
    u = v = np.zeros(16 << levels, np.int64)
    for _ in range(levels):
        x = rng.random(u.size)
        u, v = 2 * u + (x >= 0.76), 2 * v + (((x >= 0.57) & (x < 0.76)) | (x >= 0.95))
    shuffled = rng.permutation(1 << levels)
    yield f"R-MAT {levels}", symmetric(shuffled[u], shuffled[v], 1 << levels)
    for name, k, dimensions in (
        ("grid", int(500 * 2 ** (scale / 2)), 2),
        ("mesh", int(40 * 2 ** (scale / 3)), 3),
    ):
        place = np.stack(np.unravel_index(np.arange(k**dimensions), (k,) * dimensions))
        steps = np.stack(np.meshgrid(*[(-1, 0, 1)] * dimensions)).reshape(dimensions, -1).T
        if name == "grid":
            steps = steps[np.abs(steps).sum(axis=1) == 1]
        ends = []
        for step in steps:
            there = place + step[:, None]
            inside = ((there >= 0) & (there < k)).all(axis=0)
            here = np.flatnonzero(inside)
            ends.append((here, np.ravel_multi_index(tuple(there[:, inside]), (k,) * dimensions)))
        u, v = (np.concatenate(x) for x in zip(*ends, strict=True))
        yield f"{name} {k}^{dimensions}", symmetric(u, v, k**dimensions)


# Cases: for every problem the calls that are timed, on each graph or once.

ON_GRAPHS: dict[str, Callable[[Inputs], Calls]] = {}
ONCE: dict[str, Callable[[Inputs], Calls]] = {}


def case(table: dict[str, Any], *names: str) -> Callable[[Any], Any]:
    """Enter a function under the problems that it times."""

    def entered(function: Any) -> Any:
        table.update(dict.fromkeys(names, function))
        return function

    return entered


def _plain(name: str, *variants: tuple[str, dict[str, Any]]) -> None:
    """A function of a graph, with these options."""

    def calls(given: Inputs) -> Calls:
        function = getattr(given.mw, name)
        for label, options in variants or (("", {}),):
            yield (
                f"{name} {label}".rstrip(),
                lambda options=options: function(given.G, **options, **given.on),
            )

    ON_GRAPHS[name] = calls


for _name in (
    "strongly_connected_components", "condensation", "louvain", "leiden", "label_propagation",
    "maximal_independent_set", "minimum_spanning_forest", "maximal_matching", "linear_forest",
    "rabbit_order", "shingle_order", "layered_label_propagation_order", "degree_order",
    "refine_order", "gaps", "order_measures", "locality_ordering",
):  # fmt: skip
    _plain(_name)
_plain("bfs", ("", {"sources": 0}))
_plain("weighted_matching", *((m, {"method": m}) for m in ("greedy", "dominant", "suitor",
                                                           "augmented")))  # fmt: skip
_plain("degree_factor", *((f"n={n}", {"n": n}) for n in (1, 2, 4)))


@case(ON_GRAPHS, "connected_components")
def _components(given: Inputs) -> Calls:
    function = given.mw.connected_components
    yield "connected_components", lambda: function(given.G, **given.on)
    yield "connected_components raw", lambda: function(given.A, **given.on)


@case(ON_GRAPHS, "reverse_cuthill_mckee")
def _rcm(given: Inputs) -> Calls:
    function = given.mw.reverse_cuthill_mckee
    yield "reverse_cuthill_mckee", lambda: function(given.G, **given.on)
    yield "reverse_cuthill_mckee raw", lambda: function(given.A, **given.on)


@case(ON_GRAPHS, "pagerank")
def _pagerank(given: Inputs) -> Calls:
    function, rest = given.mw.pagerank, {"tol": 0, **given.on}
    yield "pagerank", lambda: function(given.G, max_iterations=20, **rest)
    yield "pagerank first", lambda: function(given.mw.graph(given.A), max_iterations=3, **rest)


@case(ON_GRAPHS, "forest_roots")
def _roots(given: Inputs) -> Calls:
    parent = given.mw.bfs(given.G, 0, **given.on).parent
    yield "forest_roots", lambda: given.mw.forest_roots(parent, **given.on)


@case(ON_GRAPHS, "modularity")
def _modularity(given: Inputs) -> Calls:
    labels = given.mw.connected_components(given.G, **given.on).labels
    yield "modularity", lambda: given.mw.modularity(given.G, labels, **given.on)


@case(ON_GRAPHS, "coarsen")
def _coarsen(given: Inputs) -> Calls:
    matched = given.mw.weighted_matching(given.G, **given.on)
    yield "coarsen", lambda: given.mw.coarsen(given.G, matched, **given.on)


@case(ON_GRAPHS, "permute")
def _permute(given: Inputs) -> Calls:
    perm = given.mw.degree_order(given.G, **given.on)
    yield "permute", lambda: given.mw.permute(given.A, perm, **given.on)


@case(ON_GRAPHS, "partition", "refine_partition")
def _partition(given: Inputs) -> Calls:
    labels = given.np.arange(given.G.n) * 16 // max(given.G.n, 1)
    for k in (2, 16):
        yield f"partition k={k}", lambda k=k: given.mw.partition(given.G, k, **given.on)
    yield "refine_partition", lambda: given.mw.refine_partition(given.G, labels, **given.on)


@case(ON_GRAPHS, "maximum_matching", "matching_bound")
def _on_the_host(given: Inputs) -> Calls:
    if given.gpu:
        return
    found = given.mw.weighted_matching(given.G, **given.on)
    yield "maximum_matching", lambda: given.mw.maximum_matching(given.G, **given.on)
    yield "matching_bound", lambda: given.mw.matching_bound(given.G, found, **given.on)


@case(ON_GRAPHS, "nested_dissection", "minimum_degree", "fill", "vertex_separator")
def _eliminate(given: Inputs) -> Calls:
    if given.gpu:
        return
    mw, G = given.mw, given.G
    perm = mw.degree_order(G, **given.on)[::-1]
    yield "nested_dissection", lambda: mw.nested_dissection(G, tries=1, **given.on).perm
    yield "minimum_degree", lambda: mw.minimum_degree(G)
    yield "fill", lambda: mw.fill(G, perm).counts
    yield "vertex_separator", lambda: mw.vertex_separator(G, tries=2, **given.on)


@case(ONCE, "minimum_vertex_cover")
def _cover(given: Inputs) -> Calls:
    if given.gpu:
        return
    rows, columns = (given.np.random.default_rng(k).integers(given.size, size=2 * given.size)
                     for k in (3, 4))  # fmt: skip
    G = given.mw.graph((2 * given.size, given.np.stack([rows, columns + given.size], axis=1)))
    yield "minimum_vertex_cover", lambda: given.mw.minimum_vertex_cover(G, **given.on).members


@case(ONCE, "streaming_matching")
def _stream(given: Inputs) -> Calls:
    if given.gpu:
        return
    draw = given.np.random.default_rng(5)
    ends = draw.integers(0, given.size // 16, (given.size // 2, 2)).tolist()
    edges = [(u, v, w) for (u, v), w in zip(ends, draw.random(len(ends)).tolist(), strict=True)]
    yield "streaming_matching", lambda: given.mw.streaming_matching(edges)


@case(ON_GRAPHS, "graph")
def _gate(given: Inputs) -> Calls:
    yield "graph", lambda: given.mw.graph(given.A)


@case(ON_GRAPHS, "preconditioners", "solve")
def _solvers(given: Inputs) -> Calls:
    import scipy.sparse as sp

    eye = sp
    if given.gpu:
        import cupyx.scipy.sparse as eye
    n, kind = given.A.shape[0], given.A.dtype
    B = (given.A + 30 * eye.identity(n, dtype=kind, format="csr")).tocsr()
    b = given.here(given.np.ones(n, kind))
    make = given.mw.preconditioners.algebraic_tridiagonal
    M = make(B)
    yield "algebraic_tridiagonal", lambda: make(B)
    yield "algebraic_tridiagonal, applied", lambda: M.matvec(b)
    yield "solve", lambda: given.mw.solve(B, b)
    if given.gpu or not hasattr(given.mw.preconditioners, "multilevel"):  # a tree without it
        return
    L = sp.csr_array(sp.diags_array(given.A.sum(axis=1) + 1e-3) - given.A)
    multilevel = given.mw.preconditioners.multilevel
    cycle = multilevel(L, **given.on)
    yield "multilevel", lambda: multilevel(L, **given.on)
    yield "multilevel, applied", lambda: cycle @ b
    unit = given.np.eye(n, 1)[:, 0] - 1 / n
    yield "solve_laplacian", lambda: given.mw.solve_laplacian(given.G, unit, rtol=1e-4, **given.on)


@case(ONCE, "tridiagonal")
def _tridiagonal(given: Inputs) -> Calls:
    np, n = given.np, given.size
    draw = np.random.default_rng(1).random
    for kind in ("float32", "float64"):
        low, middle, high, right = (given.here(draw(n).astype(kind)) for _ in range(4))
        for label, diagonal in (("random", middle), ("dominant", middle + 3)):
            yield (
                f"tridiagonal.solve {label} {kind}",
                lambda parts=(low, diagonal, high, right): given.mw.tridiagonal.solve(
                    *parts, **given.on
                ),
            )
    blocks = [given.here(draw((n // 2, 2, 2)) + 4 * np.eye(2) * at) for at in (0, 1, 0)]
    sides = given.here(draw((n // 2, 2)))
    yield (
        "block_tridiagonal.solve",
        lambda: given.mw.block_tridiagonal.solve(*blocks, sides, **given.on),
    )


@case(ONCE, "traffic_matrix", "sum_matrices", "traffic_statistics", "traffic_histograms",
      "sliding_statistics", "sense")  # fmt: skip
def _traffic(given: Inputs) -> Calls:
    mw, on = given.mw, given.on
    window = max(64, given.size // 8)
    yield "traffic_matrix", lambda: mw.traffic_matrix(*given.packets, **on)
    yield "sum_matrices", lambda: mw.sum_matrices([given.traffic] * 3, **on)
    yield "traffic_statistics", lambda: mw.traffic_statistics(given.traffic, **on)
    yield "traffic_histograms", lambda: mw.traffic_histograms(given.traffic, **on)
    yield (
        "sliding_statistics",
        lambda: mw.sliding_statistics(*given.packets, window, window // 4, **on),
    )
    yield "sense", lambda: mw.sense(given.packets, window=window, **on)


@case(ONCE, "read_capture", "read_archive", "anonymize")
def _captures(given: Inputs) -> Calls:
    if given.gpu:
        return
    sensing, archive = given.mw.sensing, given.folder / "a.tar"
    yield "read_capture", lambda: sensing.read_capture(given.capture)
    sensing.write_archive(archive, [given.traffic] * 4, compression=None)
    yield "read_archive", lambda: list(sensing.read_archive(archive))
    yield "anonymize", lambda: sensing.anonymize(given.packets[0], "permutation", b"7" * 32)


@case(ONCE, "fuzzy_join")
def _join(given: Inputs) -> Calls:
    yield "fuzzy_join", lambda: given.mw.fuzzy_join(given.sets, delta=0.7, **given.on)


@case(ONCE, "io")
def _files(given: Inputs) -> Calls:
    if given.gpu:
        return
    A = given.mw.generators.rmat(max(8, 14 + given.scale), 8, weights="uniform")
    for ending in ("mtx", "txt", "npz"):
        path = given.folder / f"a.{ending}"
        given.mw.io.write(path, A)
        yield f"io.read .{ending}", lambda path=path: given.mw.io.read(path)
        yield f"io.write .{ending}", lambda path=path: given.mw.io.write(path, A)


@case(ONCE, "generators")
def _generators(given: Inputs) -> Calls:
    make = given.mw.generators
    if given.gpu:
        return
    yield "generators.rmat", lambda: make.rmat(max(8, 15 + given.scale), 8)
    yield "generators.erdos_renyi", lambda: make.erdos_renyi(given.size, 4 * given.size)
    yield "generators.random_geometric", lambda: make.random_geometric(given.size, 0.005)


CASES = {**ON_GRAPHS, **ONCE}


# What runs on ranks, on each graph; each of them calls these.

ON_RANKS: dict[str, Callable[[Inputs], Calls]] = {}


def _on_ranks(name: str, *arguments: Any, **options: Any) -> None:
    def calls(given: Inputs) -> Calls:
        yield name, lambda: getattr(given.mw, name)(given.G, *arguments, **options)

    ON_RANKS[name] = calls


for _name in (
    "connected_components", "label_propagation", "minimum_spanning_forest", "weighted_matching",
):  # fmt: skip
    _on_ranks(_name)
_on_ranks("bfs", 0)
_on_ranks("pagerank", tol=0, max_iterations=20)


@case(ON_RANKS, "forest_roots")
def _roots_on_ranks(given: Inputs) -> Calls:
    parent = given.mw.bfs(given.G, 0).parent
    yield "forest_roots", lambda: given.mw.forest_roots(parent)


@case(ON_RANKS, "distribute")
def _distribute(given: Inputs) -> Calls:
    yield "distribute", lambda: given.mw.distribute(given.A, comm=given.comm)


# One turn: a process


def turn(tree: str, options: argparse.Namespace) -> None:
    """Time all cases; a line of JSON for each: (place, name, seconds, sum of the answer)."""
    sys.path.insert(0, tree)
    import matchwood

    assert Path(matchwood.__file__).is_relative_to(Path(tree).resolve()), matchwood.__file__
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        comm, once, on_graphs = None, ONCE, ON_GRAPHS
        if options.engine == "ranks":
            comm, once, on_graphs = matchwood.dist.world(threads=options.threads), {}, ON_RANKS
            stack.enter_context(comm)
        given = Inputs(matchwood, options.engine, options.threads, options.scale, folder, comm)
        _say(given, "copy", _copy(given))
        _run(given, once, options.only)
        for name, A in graphs(options.scale):
            given.take(name, A)
            _run(given, on_graphs, options.only)


def _run(given: Inputs, cases: dict[str, Callable[[Inputs], Calls]], only: list[str]) -> None:
    for case in dict.fromkeys(cases.values()):
        names = [name for name, each in cases.items() if each is case]
        if only and not any(word in name for word in only for name in names):
            continue
        try:
            for name, call in case(given):
                _say(given, name, call)
        except Exception as error:  # the tree does not have this function, or it failed
            _print(given, names[0], None, f"{type(error).__name__}: {error}"[:160])


def _say(given: Inputs, name: str, call: Callable[[], Any]) -> None:
    wait = _wait(given)
    answer, times = call(), []
    wait()
    begin, goes_on = time.perf_counter(), True
    while goes_on:
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
        goes_on = time.perf_counter() - begin < SECONDS and len(times) < MOST
        if given.comm is not None:  # all ranks call it as often
            goes_on = bool(given.comm.allreduce(given.np.array([int(goes_on)]), "min")[0])
    _print(given, name, statistics.median(times), _sum(given, answer))


def _print(given: Inputs, *row: Any) -> None:
    if given.comm is None or given.comm.rank == 0:
        print(json.dumps((given.name, *row)), flush=True)


def _wait(given: Inputs) -> Callable[[], Any]:
    if given.comm is not None:
        return given.comm.barrier
    if not given.gpu:
        return lambda: None
    import cupy

    return lambda: cupy.cuda.Device().synchronize()


def _copy(given: Inputs) -> Callable[[], Any]:
    source = given.here(given.np.zeros(COPIED, "uint8"))
    target = source.copy()
    return lambda: target.__setitem__(slice(None), source)


FIELDS = ("labels", "level", "mate", "neighbours", "path", "edges", "perm", "map", "indices")


def _sum(given: Inputs, answer: Any) -> int | None:
    """A number that depends on the integers of an answer and their places; None without any."""
    found = next((getattr(answer, name) for name in FIELDS if hasattr(answer, name)), answer)
    if found is not answer and callable(found):
        found = found()
    if hasattr(found, "get") and given.gpu:
        found = found.get()
    if given.comm is not None and hasattr(found, "gather"):
        found = found.gather(None)
    if not (isinstance(found, given.np.ndarray) and found.dtype.kind in "iu"):
        return None
    places = given.np.arange(found.size) % 1009 + 1
    return int((found.ravel().astype(given.np.int64) * places).sum())


# First calls, each in a process with an empty cache for compiled kernels

FIRST = """
import sys, tempfile, time
tree, name = sys.argv[1:]
sys.path.insert(0, tree)
import numpy, scipy.sparse
import matchwood
from bench import turns
with tempfile.TemporaryDirectory() as folder:
    given = turns.Inputs(matchwood, "cpu", 2, -5, folder)
    if name in turns.ON_GRAPHS:
        given.take(*next(turns.graphs(-5)))
    begin = time.perf_counter()
    next(iter(turns.CASES[name](given)))[1]()
    print(time.perf_counter() - begin)
"""


def first_call(tree: str, name: str) -> float | None:
    """Seconds of the first call of a case, compiling included."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", FIRST, tree, name], cwd=HERE.parent,
            env={**os.environ, "MATCHWOOD_CACHE_DIR": folder, "PYTHONPATH": ""},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return float(done.stdout.split()[-1]) if done.returncode == 0 and done.stdout else None


# Turns, and what they say

Times = dict[tuple[str, str], dict[str, Any]]


def turns_of(trees: dict[str, str], options: argparse.Namespace) -> Times:
    """All times: for each function the seconds, sums and faults by tree."""
    found: Times = {}
    arguments = [f"--{name}={getattr(options, name)}" for name in ("engine", "threads", "scale")]
    for number in range(options.turns):
        for which, tree in list(trees.items())[:: -1 if number % 2 else 1]:
            print(f"turn {number + 1} of {options.turns}, {which}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "bench.turns", "--tree", tree, *arguments]
            if options.engine == "ranks":
                launcher = Path(sys.executable).with_name("mpiexec")  # that of this mpi4py
                command = [str(launcher), "-n", str(RANKS), *command]
            command += ["--only", *options.only] if options.only else []
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parent,
                env={**os.environ, "PYTHONPATH": ""},
            )  # fmt: skip
            for line in done.stdout.splitlines():
                place, name, seconds, answer = json.loads(line)
                row = found.setdefault((place, name), {})
                if seconds is None:
                    row[f"{which} fault"] = answer
                else:
                    row[which] = min(seconds, row.get(which, seconds))
                    row[f"{which} answer"] = answer
    return found


def judged(found: Times, limit: float) -> list[str]:
    """Print the table; returns what is wrong."""
    wrong = []
    for (place, name), row in found.items():
        label = f"{place:12s} {name}"
        if "new fault" in row and "old fault" not in row:
            wrong.append(f"{label}: {row['new fault']}")
        if "old" not in row or "new" not in row:
            continue
        quotient = row["new"] / row["old"]
        print(f"{label:52s} {row['old'] * 1e3:10.3f} {row['new'] * 1e3:10.3f} ms {quotient:6.2f}")
        if quotient > limit:
            wrong.append(f"{label}: slower by {quotient:.2f}")
        if row.get("old answer") != row.get("new answer"):
            wrong.append(f"{label}: another answer")
    return wrong


def record_of(options: argparse.Namespace) -> Path:
    """The file of this kind of machine."""
    kind = platform.machine()
    if options.engine == "gpu":
        import cupy

        kind = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    else:
        kind += f" {options.threads} threads"
        kind += f" {RANKS} ranks" if options.engine == "ranks" else ""
    return RECORDS / f"{kind} scale {options.scale}.json".replace(" ", "-")


def copies(found: Times) -> dict[str, float]:
    """Times of this tree as multiples of the copy of its process."""
    copy = found["arrays", "copy"]["new"]
    return {
        f"{place}: {name}": row["new"] / copy
        for (place, name), row in found.items()
        if "new" in row and name != "copy"
    }


def against_record(found: Times, options: argparse.Namespace, limit: float) -> list[str]:
    path, now = record_of(options), copies(found)
    wrong = [
        f"{place}: {name}: {row['new fault']}"
        for (place, name), row in found.items()
        if "new fault" in row
    ]
    if path.exists():
        before = json.loads(path.read_text())["copies"]
        for name, value in now.items():
            quotient = value / before[name] if name in before else 1.0
            print(f"{name:52s} {before.get(name, 0):9.3f} {value:9.3f} copies {quotient:6.2f}")
            if quotient > limit:
                wrong.append(f"{name}: slower by {quotient:.2f}")
    else:
        print(f"there is no {path.name}: nothing is compared", file=sys.stderr)
    if options.record:
        import numpy
        import scipy

        about = {"machine": platform.machine(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
                 "python": platform.python_version(), "numpy": numpy.__version__,
                 "scipy": scipy.__version__, "turns": options.turns}  # fmt: skip
        rounded = {name: float(f"{value:.4g}") for name, value in now.items()}
        RECORDS.mkdir(exist_ok=True)
        path.write_text(json.dumps({**about, "copies": rounded}, indent=1) + "\n")
        print(f"written: {path}")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="turns", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--old", help="a commit")
    parser.add_argument("--tree", help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="cpu", choices=("cpu", "gpu", "ranks"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--scale", type=int, default=1, help="each step doubles the inputs")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--first", action="store_true", help="time first calls")
    parser.add_argument("--record", action="store_true", help="keep this run as the record")
    options = parser.parse_args(arguments)
    if options.tree:
        turn(options.tree, options)
        return 0
    new = str(HERE.parent / "src")
    if options.old is None:
        found = turns_of({"new": new}, options)
        wrong = against_record(found, options, options.limit or LIMITS["record"])
    else:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, "old")
            git = ["git", "-C", str(HERE.parent), "worktree"]
            subprocess.run([*git, "add", "--detach", str(tree), options.old], check=True)
            try:
                trees = {"old": str(tree / "src"), "new": new}
                if options.first:
                    names = [n for n in CASES if not options.only or n in options.only]
                    found = {("first call", name): {which: first_call(trees[which], name)
                             for which in trees} for name in names}  # fmt: skip
                    found = {k: row for k, row in found.items() if None not in row.values()}
                else:
                    found = turns_of(trees, options)
            finally:
                subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        wrong = judged(found, options.limit or LIMITS["tree"])
    print(*wrong, f"{len(found)} functions, {len(wrong)} of them not as before", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
