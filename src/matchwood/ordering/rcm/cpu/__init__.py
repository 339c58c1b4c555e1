"""Reverse Cuthill-McKee on CPU threads: components, and the choice of a method.

    children.py      records and steps that all methods share
    serial.py        "serial", and the walk over small components
    cached.py        a graph that fits the caches, in one kernel; the starts of a small graph
    leveled.py       "leveled" and "unordered"
    skewed.py        where few vertices have most arcs: levels, and the order made from them
    batch.py         "batch" and "batch_basic"; batch_table.py: what they share

The rule is in reference.py.  Components are placed in the order of their smallest vertices.  Small
ones are walked through by one thread, in one kernel however many there are.  A big one interrupts
the walk; the method asked for orders it.  `search_and_place` finds its start where none is given.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.components import connected_components
from matchwood.engines.cpu import crew, kernel, share
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.cpu import batch, cached, leveled, serial, skewed
from matchwood.ordering.rcm.cpu.batch_table import EVEN_ROW_ENTRIES, Tuning
from matchwood.ordering.rcm.cpu.cached import order_raw as order_raw
from matchwood.ordering.rcm.cpu.children import (
    BINS,
    BROKEN,
    FACT,
    FREE,
    PLACED,
    WHOLE,
    Csr,
    Sorter,
    reverse_places,
)
from matchwood.ordering.rcm.cpu.serial import STEP, rows_alike, walk
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]

ORDERS: dict[str, Callable[..., None]] = {
    "serial": serial.order,
    "leveled": leveled.order,
    "unordered": leveled.order_by_threads,
    "batch_basic": batch.order_basic,
    "batch": batch.order,
}
METHODS = tuple(ORDERS)

SMALL_ARCS = 1 << 14
"""Arcs of a component that the walk still orders.  What it has done of a larger one is lost: some
60 microseconds."""

STEPS_PER_TEST = 8
"""Arcs that count as one step of work.  A team of one thread runs in a thread of its own, so that
Ctrl-C takes effect, unless the pass takes less than a millisecond."""

SHORT_ROW_ENTRIES = 8
"""Entries, on average, up to which rows are read without a branch, unless they are like those of a
grid.  Which is quicker is in the docstring of `follow`."""

TEAM_ARCS = 1 << 21
"""Arcs below which "auto" stays with one thread, however many are asked for.  With two, R-MAT
graphs of 0.4, 1.8 and 3.7 million took 1.28, 1.12 and 0.95 of the time, meshes of 0.5, 1.1 and 2.1
million 1.45, 1.11 and 0.99."""

TEAM_PLACES = 1 << 17
"""Vertices from which a team reverses an order; one thread takes 40 microseconds for these."""

BATCH_THREADS, BATCH_ARCS, BATCH_DEGREE = 4, 1 << 21, 16
"""From these numbers of threads, arcs and arcs per vertex on "auto" takes batches for a component
whose start is given, if rows are even.  A mesh of 128^3 on 16 cores, batches against what "auto"
takes otherwise, in milliseconds: 4 threads 28 and 30, 8 threads 19 and 29, 16 threads 15 and 23;
of 64^3, against "leveled": 4.9 and 5.1, 3.6 and 5.1, 4.7 and 5.4.  R-MAT graphs do better by
levels."""

GUESSES = 16  # free vertices of least degree tried before a component is searched for its own least
SKEW = 50  # longest row over average row; with more, levels are quicker than orders, as for `bfs`


@kernel
def _reversed(team: Any, queue: Array) -> None:
    reverse_places(team, queue)


@kernel
def _look_at_rows(team: Any, indptr: Array, indices: Array, rows: Array) -> None:
    """`rows`: the most entries of one, and whether most are like the next one.

    `indptr` is unsigned: comparing signed numbers takes twice as long.
    """
    most = indptr.dtype.type(0)
    for v in range(np.uint64(indptr.size - 1)):
        row = indptr.dtype.type(indptr[v + np.uint64(1)] - indptr[v])
        if row > most:
            most = row
    rows[0], rows[1] = most, rows_alike(indptr, indices)


@kernel
def _set_marks(team: Any, mark: Array, vertices: Array, value: Any) -> None:
    lo, hi = share(team, vertices.size)
    for i in range(lo, hi):
        mark[vertices[i]] = value


class Run:
    """One call: its arrays, made when first needed, and what was counted."""

    def __init__(
        self, graph: Any, method: str, stats: bool, threads: int | None, caller: str,
        searched: bool = True,
    ) -> None:  # fmt: skip
        view, loops = _pattern(graph, method, searched)
        self.view, self.graph, self.caller = view, graph, caller
        self.method, self.stats = method, stats
        self.n, self.kind = view.n, view.indptr.dtype
        self.unsigned = np.uint32 if self.kind == np.int32 else np.uint64
        self.small = reference.is_small(view, loops * view.n)
        self.team = crew(threads, work=view.nnz + view.n)
        self.alone = crew(1, work=(view.nnz + view.n) // STEPS_PER_TEST)
        self.queue = self.places()
        rows = np.zeros(2, np.int64)
        indices = view.indices.view(self.unsigned)
        self.alone.run(_look_at_rows, view.indptr.view(self.unsigned), indices, rows)
        self.longest = int(rows[0])
        guessable = bool(rows[1] or view.nnz > SHORT_ROW_ENTRIES * view.n)
        self.csr = Csr(view.indptr, indices, guessable, np.uint64(loops))
        self.shift = max(1, (self.n - 1).bit_length())
        if self.shift + self.longest.bit_length() > 64:
            raise OverflowError(
                f"{caller}: {self.n} vertices and a degree of {self.longest} do not "
                "fit 64 bits together"
            )
        self.errors = {BROKEN: lambda detail: not_symmetric(caller)}
        self.facts = np.zeros(len(FACT), np.int64)
        self.counters: dict[str, Any] = {}
        self.seconds = {"search": 0.0, "order": 0.0}
        self.reverse = False  # whether the reverse order is asked for
        self.reversed = False  # whether a method has reversed it already
        self.placed_by_batches = False
        self.delays = np.empty(0, np.uint64)
        self.tuning = Tuning.of(self.team.size)
        self.lists: Array | None = None  # of leveled
        self.ends: Array | None = None
        self.search: skewed.Search | None = None
        self._sorters: dict[int, Sorter] = {}

    def places(self) -> Array:
        """A queue for all vertices, with memory for one more behind it: see `place_free`."""
        return np.empty(self.n + 1, self.unsigned)[: self.n]

    @functools.cached_property
    def spare(self) -> Array:
        """A second queue, for searches."""
        return self.places()

    @functools.cached_property
    def mark(self) -> Array:
        """Which vertices are placed; not used by batches that place all of them at once."""
        return np.full(self.n, FREE, np.uint8)

    def sorters(self, members: int) -> Sorter:
        """Buffers to sort children in, with a row for each member."""
        if members not in self._sorters:
            room = max(1, self.longest)
            self._sorters[members] = Sorter(
                np.uint64(self.shift), np.empty((members, room), np.uint64),
                np.empty((members, room), np.uint64), np.empty((members, BINS), np.uint64),
            )  # fmt: skip
        return self._sorters[members]

    def sorter(self) -> Sorter:
        """Sort buffers for a kernel that one thread runs."""
        shift, keys, other, bins = self.sorters(1)
        return Sorter(shift, keys[0], other[0], bins[0])

    def delayed(self, seed: int) -> None:
        """Have members wait for random times between phases, for tests."""
        rng = np.random.default_rng(seed)
        self.delays = rng.integers(1, 1 << 63, 16 * self.team.size, dtype=np.uint64)

    def auto(self) -> Callable[..., None]:
        few = self.method == "auto" and self.csr.indices.size < TEAM_ARCS
        if self.method == "serial" or self.team.size == 1 or few:
            return serial.order
        return leveled.order

    def orderer(self) -> Callable[..., None]:
        return self.auto() if self.method == "auto" else ORDERS[self.method]

    def placer(self) -> Callable[..., None]:
        """The method for a component whose start is given: no search has ordered it already."""
        suits_batches = (
            self.team.size >= BATCH_THREADS
            and self.csr.indices.size >= max(BATCH_ARCS, BATCH_DEGREE * self.n)
            and self.longest <= EVEN_ROW_ENTRIES
            and not self.csr.loops
        )
        return batch.order if self.method == "auto" and suits_batches else self.orderer()

    def place(self, start: int, at: int, limit: int) -> int:
        """Order the component of a given start; returns where it ends."""
        begun = time.perf_counter()
        method = self.placer()
        method(self, start, self.queue, at, limit)
        self.placed_by_batches = method is batch.order
        self.seconds["order"] += time.perf_counter() - begun
        return int(self.facts[FACT.end])

    @property
    def searching(self) -> Any:
        """Who searches for a start."""
        return self.alone if self.auto() is serial.order else self.team

    def set_marks(self, queue: Array, a: int, b: int, value: Any) -> None:
        """Mark the vertices at places a to b, which may be all."""
        if b - a == self.n:
            self.mark.fill(value)
        else:
            self.searching.run(_set_marks, self.mark, queue[a:b], value)

    def expect(self, end: int) -> None:
        if self.facts[FACT.end] != end:  # in a symmetric pattern every search reaches all
            raise not_symmetric(self.caller)


def _pattern(graph: Any, method: str, searched: bool) -> tuple[Any, int]:
    """The symmetric pattern, and 1 if every vertex is its own neighbour there, else 0.

    A vertex is placed before its row is read, so loops do not matter; and where all have one,
    degrees compare as they do without.  Leaving them out costs a copy, which other methods need.
    """
    serves = method in ("auto", "serial", "leveled") and searched
    if serves and graph.has_symmetric_pattern and graph.loops == graph.n > 0:
        return graph.directed_pattern(), 1
    return graph.undirected_pattern(), 0


def order(
    graph: Any, starts: Array, method: str, reverse: bool, *, stats: bool = False,
    threads: int | None = None, caller: str = "reverse_cuthill_mckee", seed: int | None = None,
    tuning: Tuning | None = None,
) -> tuple[Array, dict[str, Any]]:  # fmt: skip
    found = _ordered_at_once(graph, starts, method, reverse, threads, caller)
    if found is not None:
        return found
    run = Run(graph, method, stats, threads, caller, searched=starts.size == 0)
    if seed is not None:  # tests only, as is `tuning`
        run.delayed(seed)
    if tuning is not None:
        run.tuning = tuning
    n = run.n
    run.reverse = reverse
    state = np.zeros(len(STEP), np.int64)
    firsts = np.empty(0, np.int64)
    given = starts
    if run.small:
        firsts, starts = _tried_starts(run, state, given, threads)
    elif given.size > 1:
        firsts, starts = _owners(run, given, threads)
    if given.size == 1:
        _place_first(run, state, int(given[0]), firsts, starts)
    _walk(run, state, firsts, starts, n)
    if state[STEP.place] != n:
        raise not_symmetric(caller)
    if reverse and not run.reversed:
        (run.team if n >= TEAM_PLACES else run.alone).run(_reversed, run.queue)
    return run.queue.view(run.kind), _counted(run, state)


def _symmetric_pattern(graph: Any) -> tuple[Any, int, int]:
    """The symmetric pattern, how many loops it has, and the length of its longest row."""
    loops, symmetric = graph.symmetry()
    if symmetric:
        return graph.directed_pattern(), loops, graph.longest_row
    view = graph.undirected_pattern()
    return view, 0, int(np.diff(view.indptr).max(initial=0))


def _ordered_at_once(
    graph: Any, starts: Array, method: str, reverse: bool, threads: int | None, caller: str
) -> tuple[Array, dict[str, Any]] | None:
    """The order of a graph that fits the caches, and the counters; None for a larger one.

    Where a method for teams was asked for: only graphs of at most SMALL_ARCS entries, no starts.
    """
    most = most_arcs = cached.CACHED_ENTRIES
    if method not in ("auto", "serial"):
        most_arcs = -1 if starts.size else SMALL_ARCS
    if graph.n + graph.nnz > most or graph.nnz > most_arcs:
        return None
    view, loops, longest = _symmetric_pattern(graph)
    small = reference.is_small(view, loops)
    skewed = longest * view.n >= SKEW * view.nnz  # then levels are found faster than orders
    if view.n + view.nnz > most or view.nnz > most_arcs or (skewed and not small):
        return None
    begun = time.perf_counter()
    found = cached.order(view, loops, longest, small, starts, reverse, caller)
    if found is None:  # `order` says what is wrong
        return None
    seconds = {"search": 0.0, "order": time.perf_counter() - begun}
    components, levels, searches, _ = found.counts.tolist()
    used = crew(threads, work=view.nnz + view.n).size, components, levels, view.n, searches
    return found.perm, _counters("serial" if method == "auto" else method, *used, seconds)


def _counters(
    method: str, threads: int, components: Any, levels: Any, n: int, searches: Any, seconds: Any
) -> dict[str, Any]:
    return {
        "method": method,
        "threads": threads,
        "components": int(components),
        "levels": int(levels),
        "front": n / max(1, int(levels)),
        "searches": int(searches),
        "seconds": seconds,
    }


def start_of(graph: Any, vertex: int, *, threads: int | None = None) -> int:
    caller = "pseudo_peripheral_vertex"
    view, loops, longest = _symmetric_pattern(graph)
    if reference.is_small(view, loops):
        found = cached.order(view, loops, longest, True, cached.NO_STARTS, False, caller)
        assert found is not None
        place = int(np.flatnonzero(found.perm == vertex)[0])
        return int(found.perm[found.begins[found.begins <= place][-1]])
    run = Run(graph, "auto", False, threads, caller)
    if run.csr.indptr[vertex + 1] - run.csr.indptr[vertex] == run.csr.loops:
        return vertex
    search_and_place(run, vertex, 0, run.n)
    return int(run.queue[0])


def _tried_starts(
    run: Run, state: Array, starts: Array, threads: int | None
) -> tuple[Array, Array]:
    """The smallest vertices of all components of a small graph, and their starts."""
    begun = time.perf_counter()
    found = cached.order(
        run.view, run.n * int(run.csr.loops), run.longest, True, starts, False, run.caller
    )
    if found is None:
        return _owners(run, starts, threads)  # which raises
    state[STEP.searches] = found.counts[cached.COUNT.searches]
    run.seconds["search"] += time.perf_counter() - begun
    firsts = np.minimum.reduceat(found.perm, found.begins) if run.n else found.perm
    return firsts.astype(np.int64), found.perm[found.begins].astype(np.int64)


def _place_first(run: Run, state: Array, start: int, firsts: Array, starts: Array) -> None:
    """Order the component of the only start at once; its smallest vertex says where it belongs."""
    end = run.place(start, 0, run.n)
    smallest = int(run.queue[:end].min()) if end < run.n else 0
    state[STEP.components] += 1
    state[STEP.levels] += run.facts[FACT.levels]
    if smallest > 0:
        block = run.queue[:end].copy()
        _walk(run, state, firsts, starts, smallest)
        at = int(state[STEP.place])
        run.queue[at : at + end] = block
        state[STEP.place] = at + end
    else:
        state[STEP.place] = end
    state[STEP.vertex] = smallest + 1
    state[STEP.given] += firsts.size > 0  # then this component is one of those


def _walk(run: Run, state: Array, firsts: Array, starts: Array, stop: int) -> None:
    """Place all components whose smallest vertices are below `stop`."""
    while state[STEP.vertex] < stop and state[STEP.place] < run.n:
        begun = time.perf_counter()
        run.alone.run(
            walk, run.csr, run.mark, run.queue, run.spare, firsts, starts, state, np.uint64(stop),
            np.uint64(SMALL_ARCS), run.sorter(), errors=run.errors,
        )  # fmt: skip
        run.seconds["order"] += time.perf_counter() - begun
        if state[STEP.code] == WHOLE:
            return
        first, at, given = (int(state[word]) for word in (STEP.vertex, STEP.place, STEP.given))
        if given < firsts.size and firsts[given] == first:
            end = run.place(int(starts[given]), at, run.n)
            state[STEP.given] += 1
        else:
            end, searches = search_and_place(run, first, at, run.n)
            state[STEP.searches] += searches
        state[STEP.vertex], state[STEP.place] = first + 1, end
        state[STEP.components] += 1
        state[STEP.levels] += run.facts[FACT.levels]


def _owners(run: Run, starts: Array, threads: int | None) -> tuple[Array, Array]:
    """The smallest vertices of the components of the given starts, ascending, and the starts."""
    count, labels = connected_components(run.graph, engine="cpu", threads=threads)
    smallest = np.full(count, run.n, np.int64)
    np.minimum.at(smallest, labels, np.arange(run.n))
    owner = labels[starts]
    order = np.lexsort((starts, owner))
    owner, starts = owner[order], starts[order]
    twice = np.flatnonzero(np.diff(owner) == 0)
    if twice.size:
        raise reference.two_starts(run.caller, *starts[twice[0] : twice[0] + 2])
    return smallest[owner], starts


def _counted(run: Run, state: Array) -> dict[str, Any]:
    method = run.method
    if method == "auto":
        method = "serial" if run.auto() is serial.order else "leveled"
        if run.placed_by_batches:
            method = "batch"
    components, levels, searches = state[[STEP.components, STEP.levels, STEP.searches]]
    found = components, levels, run.n, searches, run.seconds
    return {**_counters(method, run.team.size, *found), **run.counters}


# The start of a big component in a graph that is not small, and the order from there: the rule is
# in the docstring of `pseudo_peripheral_vertex`, after George and Liu.
#
# A search for a start needs the levels from a vertex, which the order from there gives as well.  So
# searches are orders, and the one from the start is kept; as a rule it is the first.  Where levels
# are found without an order, it is made at the end, from the start.


@kernel
def _least_free(team: Any, indptr: Array, loops: Any, mark: Array, best: Array) -> None:
    """For each member, the least (degree, vertex) among its free vertices that have neighbours."""
    lo, hi = share(team, mark.size)
    least: Any = np.int64(0x7FFFFFFFFFFFFFFF)
    at: Any = np.int64(-1)
    for v in range(lo, hi):
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        if np.int64(loops) < degree < least and mark[v] == FREE:
            least, at = degree, v
    best[team.me, 0], best[team.me, 1] = least, at


def search_and_place(run: Any, first: int, at: int, limit: int) -> tuple[int, int]:
    """Order the component of `first` from its start; returns its end, and the searches made."""
    begun = time.perf_counter()
    facts = run.facts
    search = _searcher(run)
    kept, spare = run.queue, run.spare
    searches = _from_least(run, first, at, limit)
    about = [FACT.end, FACT.levels, FACT.width, FACT.last]
    end, levels, width, last = (int(x) for x in facts[about])
    start = int(kept[at])
    while True:
        x = _least(run, kept[last:end])
        run.set_marks(kept, at, end, FREE)
        search(run, x, spare, at, end, width)
        searches += 1
        if facts[FACT.code] != WHOLE:
            run.set_marks(kept, at, end, PLACED)
            facts[[*about, FACT.code]] = end, levels, width, last, WHOLE
            break
        run.expect(end)
        kept, spare, start = spare, kept, x
        before = levels
        levels, width, last = (int(x) for x in facts[about[1:]])
        if levels <= before:
            break
    which = int(kept is run.queue)
    if kept is not run.queue:
        run.queue[at:end] = kept[at:end]
    run.seconds["search"] += time.perf_counter() - begun
    if search is skewed.order_levels and skewed.suits(run):
        begun = time.perf_counter()
        skewed.order_by_levels(run, levels, which)
        run.seconds["order"] += time.perf_counter() - begun
    elif search is not run.orderer():
        run.set_marks(run.queue, at, end, FREE)
        run.place(start, at, end)
        run.expect(end)
    return end, searches


def _searcher(run: Any) -> Any:
    """The method for a search: levels alone where a few rows have most entries, else an order."""
    if run.longest * run.n >= SKEW * run.csr.indices.size:
        return skewed.order_levels
    return run.auto()


def _from_least(run: Any, first: int, at: int, limit: int) -> int:
    """Order the component of `first` from its vertex of least (degree, vertex).

    Usually the least of all free vertices is in it, so that is tried first.  Returns the searches.
    """
    search, tried = _searcher(run), []
    team = run.searching
    best = np.empty((team.size, 2), np.int64)
    found = False
    for _ in range(GUESSES):
        team.run(_least_free, run.csr.indptr, run.csr.loops, run.mark, best)
        guess = int(best[best[:, 0].argmin(), 1])  # argmin takes the first of equals
        search(run, guess, run.queue, at, limit)
        found = run.mark[first] == PLACED
        if found:
            break
        tried.append(run.queue[at : int(run.facts[FACT.end])].copy())
    for members in tried:  # of other components, which are placed later
        run.mark[members] = FREE
    if found:
        return 1 + len(tried)
    search(run, first, run.queue, at, limit)
    end = int(run.facts[FACT.end])
    least = _least(run, run.queue[at:end])
    run.set_marks(run.queue, at, end, FREE)
    search(run, least, run.queue, at, end)
    run.expect(end)
    return 2 + len(tried)


def _least(run: Any, vertices: Array) -> int:
    v = vertices.astype(np.int64)
    degree = (run.csr.indptr[v + 1] - run.csr.indptr[v]).astype(np.int64)
    return int(v[degree == degree.min()].min())
