"""What __main__.py times: the benchmark of a thesis on parallel graph algorithms, finished.

R. Cichra, Parallel graph algorithms for GPU (CTU Prague, 2024) timed components, strong components
and independent sets of random directed graphs on one CPU thread, on all, and on a GPU.  Here
spanning forests, other libraries and real graphs join in, and every answer is checked first.

libraries.py holds the other libraries' calls, show.py the tables, plots and metadata.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench.papers.cichra import libraries
from matchwood import engines, generators
from matchwood.report.timing import once, take_turns

SIZES = tuple(range(1000, 8001, 500))  # vertices
DENSITIES = (0.1, 0.45, 0.65)  # share of all pairs that are edges
QUICK_SIZES = (100, 200)  # vertices
ENGINES = ("CPU", "HOST", "GPU")  # the thesis' words: one thread, all threads, GPU
SUFFIXES = ("gz", "bz2", "xz", "zst", "mtx", "txt", "csv", "tsv", "gr", "graph", "graph-txt", "npz")
SLOW = 20.0  # seconds; a library that took longer is left out for larger graphs
CHECKED = 30_000_000  # entries; answers for more are compared between engines, to save memory
AT_MOST = 5.0  # seconds of one comparison before no further round is begun


class Case:
    """One graph, with what the problems and the libraries need of it, made when first used."""

    def __init__(self, name: str, matrix: Any, density: float | None = None) -> None:
        self.name = name
        self.matrix = sp.csr_array(matrix)
        self.density = density
        self.seconds: dict[str, float] = {}  # to bring it into the form of a library

    @property
    def n(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def directed(self) -> matchwood.Graph:
        """The graph itself, prepared; how long that took is kept."""

        def prepare() -> matchwood.Graph:
            G = matchwood.graph(self.matrix)
            G.undirected_pattern()
            G.transposed_pattern()
            return G

        self.seconds["prepared"], G = once(prepare)
        return G

    @cached_property
    def counterpart(self) -> Any:
        """Its undirected counterpart, with random weights, as a SciPy matrix."""
        view = self.directed.undirected_pattern()
        ones = np.ones(view.nnz, np.float64)
        U = sp.csr_array((ones, view.indices, view.indptr), shape=(self.n, self.n))
        return generators.random_weights(U, dtype=np.float64)

    @cached_property
    def undirected(self) -> matchwood.Graph:
        """That, prepared; how long that took is kept."""
        made = self.counterpart  # before the clock starts

        def prepare() -> matchwood.Graph:
            G = matchwood.graph(made)
            G.undirected_weights()
            return G

        self.seconds["prepared with weights"], G = once(prepare)
        return G

    def form(self, key: str, make: Callable[[Case], Any]) -> Any:
        """The graph in the form of a library; how long that took is kept."""
        made = self.__dict__.setdefault("_forms", {})
        if key not in made:
            self.seconds[key], made[key] = once(lambda: make(self))
        return made[key]


@dataclass(frozen=True)
class Task:
    """One problem: our call, its check, and whether another library's answer agrees."""

    name: str
    short: str
    weighted: bool
    ours: Callable[[Any, int | None], Any]
    check: Callable[[Any, Any], None]
    agrees: Callable[[Case, Any, Any], bool]  # (graph, our answer, theirs)
    engines: tuple[str, ...] = ENGINES  # that it is timed on


def _strong(G: Any, threads: int | None, **options: Any) -> Any:
    from matchwood.components.strong import strongly_connected_components

    return strongly_connected_components(G, threads=threads, **options)


def _check_strong(G: Any, found: Any) -> None:
    from matchwood.components.strong.check import check_strongly_connected_components

    check_strongly_connected_components(G, found)


def _forest(G: Any, threads: int | None, **options: Any) -> Any:
    from matchwood.spanning.forest import minimum_spanning_forest

    return minimum_spanning_forest(G, threads=threads, **options)


def _check_forest(G: Any, found: Any) -> None:
    from matchwood.spanning.forest.check import check_spanning_forest

    check_spanning_forest(G, found)


def _is_set(case: Case, members: Any) -> bool:
    try:
        found = np.asarray(members, bool)
        matchwood.check.check_maximal_independent_set(case.directed, found)
    except matchwood.CheckFailed:
        return False
    return True


TASKS = (
    Task(
        "connected components",
        "CC",
        False,
        lambda G, threads, **options: matchwood.connected_components(G, threads=threads, **options),
        matchwood.check.check_connected_components,
        lambda case, mine, count: bool(mine.count == count),
    ),
    Task(
        "strong components",
        "SCC",
        False,
        _strong,
        _check_strong,
        lambda case, mine, count: bool(mine.count == count),
    ),
    Task(
        "independent set",
        "MIS",
        False,
        lambda G, threads, **options: matchwood.maximal_independent_set(
            G, threads=threads, **options
        ),
        lambda G, found: matchwood.check.check_maximal_independent_set(G, found, method="luby"),
        lambda case, mine, theirs: _is_set(case, theirs),  # another set, but it has to be one
    ),
    Task(
        "spanning forest",
        "MSF",
        True,
        _forest,
        _check_forest,
        lambda case, mine, theirs: bool(
            np.isclose(mine.total, libraries.total(case, theirs), rtol=1e-9)
        ),
    ),
)


METHODS: dict[str, dict[str, tuple[str, ...]]] = {  # and the engines that have them
    "CC": {"afforest": ENGINES, "fastsv": ENGINES, "bfs": ENGINES},
    "SCC": {
        "tarjan": ("CPU",),
        "forward_backward": ENGINES,
        "multistep": ENGINES,
        "propagation": ("GPU",),
    },
    "MIS": {"luby": ENGINES, "luby_sampling": ENGINES, "lexicographic": ENGINES},
    "MSF": {
        "boruvka": ENGINES,
        "awerbuch_shiloach": ENGINES,
        "kruskal": ("CPU", "HOST"),
        "filter_kruskal": ("CPU", "HOST"),
    },
}


def tasks_by_method() -> list[Task]:
    """A task for each method of each problem; other libraries have none of them."""
    found = []
    for task in TASKS:
        for method, places in METHODS[task.short].items():
            check: Any = task.check
            if task.short == "MIS":
                check = partial(_check_set, method=method)
            found.append(
                replace(
                    task,
                    name=f"{task.name} by {method}",
                    short=f"{task.short} {method}",
                    ours=partial(task.ours, method=method),
                    check=check,
                    engines=places,
                )
            )
    return found


def _check_set(G: Any, found: Any, method: str) -> None:
    matchwood.check.check_maximal_independent_set(G, found, method=method)


@dataclass
class Row:
    """One problem on one graph, as the thesis prints it, and the others' times."""

    problem: str
    graph: str
    n: int
    entries: int
    density: float | None
    seconds: dict[str, float]
    comparison: dict[str, float] = field(default_factory=dict)
    thread_efficiency: float | None = None
    preparing: dict[str, float] = field(default_factory=dict)  # seconds, not in the times
    verified: str = ""
    notes: list[str] = field(default_factory=list)

    def compare(self, threads: int) -> None:
        """The thesis' columns: a x b is b's time divided by a's."""
        for a, b in (("HOST", "CPU"), ("GPU", "CPU"), ("GPU", "HOST")):
            if a in self.seconds and b in self.seconds:
                self.comparison[f"{a} x {b}"] = self.seconds[b] / self.seconds[a]
        if "CPU" in self.seconds and "HOST" in self.seconds:
            self.thread_efficiency = self.seconds["CPU"] / (self.seconds["HOST"] * threads)


def random_cases(sizes: Sequence[int], densities: Sequence[float]) -> Iterator[Case]:
    """The thesis' graphs: each possible arc is there with the probability `density`."""
    for density in densities:
        for n in sizes:
            A = generators.dense_random(n, density, directed=True, rng=n)
            yield Case(f"random {n}", A, density)


def real_cases(folder: Path | None, most: int | None = None) -> Iterator[Case]:
    """The graphs of a folder that can be read as one, or none without a folder."""
    found = 0
    for path in sorted(folder.iterdir()) if folder is not None else ():
        if most is not None and found >= most:
            return
        try:
            A = matchwood.io.read(path)
        except (ValueError, OSError):  # names, points, hypergraphs: no graphs
            continue
        if sp.issparse(A) and A.shape[0] == A.shape[1] and A.nnz:
            found += 1
            yield Case(_stem(path.name), A)


def _stem(name: str) -> str:
    """A file's name without the suffixes of formats: USA-road-d.NY.gr.gz is USA-road-d.NY."""
    while name.rpartition(".")[2] in SUFFIXES and name.rpartition(".")[0]:
        name = name.rpartition(".")[0]
    return name


def data_folder() -> Path | None:
    """The folder ``graphs`` of $MATCHWOOD_DATA, if there is one."""
    named = os.environ.get("MATCHWOOD_DATA")
    folder = Path(named, "graphs") if named else None
    return folder if folder is not None and folder.is_dir() else None


def run(
    *,
    quick: bool = False,
    graphs: Iterable[tuple[str, Any]] = (),
    threads: int | None = None,
    repeats: int = 5,
    peers: bool | Sequence[str] = True,
    methods: bool = False,
    sizes: Sequence[int] | None = None,
    places: Sequence[str] = ENGINES,
    problems: Sequence[str] | None = None,
    say: Callable[[str], object] = lambda _: None,
    keep: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Check, then time, every problem on every graph; plain values, ready for JSON.

    Parameters
    ----------
    quick : bool
        Two small graphs of one density and one real graph, to see that it works.
    graphs : iterable of (name, matrix)
        In place of the thesis' graphs and of those in $MATCHWOOD_DATA.
    threads : int or None
        Of HOST.
    repeats : int
        Rounds; the median counts.
    peers : bool or sequence of str
        Time the other libraries that are installed as well, or only these of them.
    methods : bool
        Time every method of every problem instead of the best ones; no other libraries then.
    sizes : sequence of int or None
        Vertices of the thesis' graphs; None takes all of its sizes and the real graphs.
    places : sequence of str
        Which of ENGINES are timed; other libraries only beside "CPU".
    problems : sequence of str or None
        Which of CC, SCC, MIS and MSF; None takes all.
    say : callable (str)
        Told what comes next.
    keep : callable (dict)
        Given the results so far after each row, so that a run that is cut off is not lost.
    """
    from bench.papers.cichra import show
    from matchwood.engines.cpu import default_threads

    size = threads or default_threads()
    given = [Case(name, matrix) for name, matrix in graphs]
    if given:
        cases: Iterable[Case] = given
    elif sizes is not None:
        cases = random_cases(sizes, DENSITIES)
    else:
        cases = _all_cases(quick)
    installed = libraries.installed() if peers and not methods and "CPU" in places else {}
    if not isinstance(peers, bool):
        installed = {name: library for name, library in installed.items() if name in peers}
    tasks = [
        replace(task, engines=tuple(place for place in task.engines if place in places))
        for task in (tasks_by_method() if methods else TASKS)
    ]
    chosen = METHODS if problems is None else problems
    tasks = [task for task in tasks if _can_run(task) and task.short.split()[0] in chosen]
    tired: set[tuple[str, str]] = set()
    found: dict[str, Any] = {
        "machine": show.machine(),
        "config": matchwood.show_config(mode="dicts"),
        "threads": size,
        "repeats": repeats,
        "libraries": {name: library.version for name, library in installed.items()},
        "results": [],
    }
    for case in cases:
        for task in tasks:
            say(f"{task.name}, {case.name}" + (f", {case.density:g}" if case.density else ""))
            row = measure(task, case, size, repeats, installed, tired)
            row.compare(size)
            found["results"].append(vars(row))
            keep(found)
    return found


def _can_run(task: Task) -> bool:
    return bool(task.engines) and (engines.gpu_available() or task.engines != ("GPU",))


def _all_cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield from random_cases(QUICK_SIZES, DENSITIES[-1:])
        yield from real_cases(data_folder(), most=1)
    else:
        yield from random_cases(SIZES, DENSITIES)
        yield from real_cases(data_folder())


def measure(
    task: Task,
    case: Case,
    threads: int,
    repeats: int,
    installed: dict[str, libraries.Library],
    tired: set[tuple[str, str]],
) -> Row:
    """One row.  `tired`: libraries that took too long for a problem, with which it grows."""
    G = case.undirected if task.weighted else case.directed
    calls: dict[str, Callable[[], Any]] = {
        "CPU": partial(task.ours, G, 1),
        "HOST": partial(task.ours, G, threads),
    }
    if engines.gpu_available():
        calls["GPU"] = _gpu_call(task, G)
    calls = {name: call for name, call in calls.items() if name in task.engines}
    answer = next(iter(calls.values()))()
    if not all(_same(answer, call()) for call in calls.values()):
        raise matchwood.CheckFailed(f"{task.name}, {case.name}: the engines differ")
    verified = "engines agree"
    if G.nnz <= CHECKED:
        task.check(G, answer)
        verified = "checked"
    row = Row(task.short, case.name, case.n, case.matrix.nnz, case.density, {}, verified=verified)
    for name, library in installed.items():
        call_theirs = library.calls.get(task.short)
        if call_theirs is None or (name, task.short) in tired:
            continue
        seconds, theirs = once(partial(call_theirs, case))
        if G.nnz <= CHECKED and not task.agrees(case, answer, theirs):
            row.notes.append(f"{task.short}: the answer of {name} is wrong, or ours")
        if seconds > SLOW:  # the conversion counts here, and not below
            tired.add((name, task.short))
        calls[name] = partial(call_theirs, case)
    row.seconds = take_turns(calls, repeats=repeats, at_most=AT_MOST)
    row.preparing = dict(case.seconds)
    return row


def _gpu_call(task: Task, graph: matchwood.Graph) -> Callable[[], Any]:
    """The call on a graph that lives on the GPU, waiting for its end."""
    cupy = engines.cupy()
    G = graph.on("gpu")

    def call() -> Any:
        answer = task.ours(G, None)
        cupy.cuda.get_current_stream().synchronize()
        return answer

    return call


def _same(one: Any, other: Any) -> bool:
    """The arrays of two answers are identical, wherever they live."""
    if hasattr(one, "shape"):
        return np.array_equal(engines.moved(one, "cpu"), engines.moved(other, "cpu"))
    pairs = ((value, getattr(other, name)) for name, value in vars(one).items())
    return all(_same(a, b) for a, b in pairs if hasattr(a, "shape"))
