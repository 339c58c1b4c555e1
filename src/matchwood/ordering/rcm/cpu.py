"""Reverse Cuthill-McKee on CPU threads: components, their starts, and the choice of a method.

The rule is in reference.py.  Components are placed in the order of their smallest vertices.  Small
ones are walked through by one thread (cpu_serial.walk), in one kernel however many there are.  A
big one interrupts the walk and is ordered by the method asked for:

    cpu_serial.py     one thread
    cpu_leveled.py    a level at a time
    cpu_unordered.py  a thread for each level
    cpu_batch.py      batches of the queue, ahead of their turn; called by cpu_batch_host.py

A search for a start needs the levels from a vertex, which the order from there gives as well; so
searches are orders, and the one from the start is kept.  It is the first, as a rule.  Only where
degrees are skewed levels are found much faster than an order (cpu_search.py).  A small graph tries
its starts on one thread, whatever the method.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.components import connected_components
from matchwood.ordering.rcm import cpu_batch_host, reference
from matchwood.ordering.rcm.cpu_batch_work import EVEN_ROW, Tuning
from matchwood.ordering.rcm.cpu_sort import BINS, reverse_places
from matchwood.ordering.rcm.leveled import cpu as cpu_leveled
from matchwood.ordering.rcm.serial import cpu as cpu_serial
from matchwood.ordering.rcm.serial.cpu import (
    BROKEN,
    CODE,
    END,
    FACTS,
    LAST,
    LEVELS,
    TRIED,
    WHOLE,
    WIDTH,
)
from matchwood.ordering.rcm.start import cpu as cpu_search
from matchwood.ordering.rcm.unordered import cpu as cpu_unordered
from matchwood.primitives.patterns import not_symmetric
from matchwood.teams import crew, kernel, share

Array = np.ndarray[Any, Any]

METHODS = ("serial", "leveled", "unordered", "batch_basic", "batch")

SMALL_ARCS = 1 << 16
"""Arcs of a component that the walk still orders; a few hundred microseconds' work, below which a
team is not worth its start."""

TEAM_ARCS = 1 << 21
"""Arcs below which "auto" stays with one thread, however many are asked for.  With two, R-MAT
graphs of 0.4, 1.8 and 3.7 million took 1.28, 1.12 and 0.95 of the time, meshes of 0.5, 1.1 and 2.1
million 1.45, 1.11 and 0.99."""

BATCH_THREADS, BATCH_ARCS, BATCH_DEGREE = 4, 1 << 21, 16
"""With so many threads "auto" takes batches for a component whose start is given, where rows are
short and even but not too short.  A mesh of 128^3 on 16 cores, batches against what "auto" takes
otherwise, in milliseconds: 4 threads 28 and 30, 8 threads 19 and 29, 16 threads 15 and 23; of 64^3,
against "leveled": 4.9 and 5.1, 3.6 and 5.1, 4.7 and 5.4.  R-MAT graphs do better by levels."""

GUESSES = 16  # vertices of least degree tried before a big component is searched for its own

NO_LIMIT = np.uint64(0xFFFFFFFFFFFFFFFF)
ERRORS = {BROKEN: lambda detail: not_symmetric("reverse_cuthill_mckee")}


@kernel
def _reversed(team: Any, queue: Array) -> None:
    reverse_places(team, queue)


@kernel
def _longest_row(team: Any, indptr: Array, longest: Array) -> None:
    """The most entries of a row, `indptr` as unsigned numbers: compared as signed ones it takes
    twice as long."""
    most = indptr.dtype.type(0)
    for v in range(np.uint64(indptr.size - 1)):
        row = indptr.dtype.type(indptr[v + np.uint64(1)] - indptr[v])
        if row > most:
            most = row
    longest[0] = most


@kernel
def _least_free(team: Any, indptr: Array, mark: Array, best: Array) -> None:
    """For each member, the least (degree, vertex) among its free vertices that have neighbours."""
    lo, hi = share(team, mark.size)
    least, at = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-1)
    for v in range(lo, hi):
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        if 0 < degree < least and mark[v] == cpu_serial.FREE:
            least, at = degree, v
    best[team.rank, 0], best[team.rank, 1] = least, at


class Run:
    """One call: its arrays, made when first needed, and what was counted."""

    def __init__(self, view: Any, method: str, stats: bool, threads: int | None) -> None:
        self.n, self.indptr = view.n, view.indptr
        self.kind = view.indptr.dtype
        self.unsigned = np.uint32 if self.kind == np.int32 else np.uint64
        self.indices = view.indices.view(self.unsigned)
        self.view, self.method, self.stats = view, method, stats
        self.small = reference.is_small(view)
        self.team = crew(threads, work=view.nnz + view.n)
        self.alone = crew(1, work=view.nnz + view.n)
        self.queue = np.empty(self.n, self.unsigned)
        longest = np.zeros(1, np.int64)
        self.alone.run(_longest_row, view.indptr.view(self.unsigned), longest)
        self.longest = int(longest[0])
        self.shift = max(1, (self.n - 1).bit_length())
        if self.shift + self.longest.bit_length() > 64:
            raise OverflowError(
                f"reverse_cuthill_mckee: {self.n} vertices and a degree of {self.longest} do not "
                "fit 64 bits together"
            )
        self.facts = np.zeros(FACTS, np.int64)
        self.counters: dict[str, Any] = {}
        self.seconds = {"search": 0.0, "order": 0.0}
        self.reverse = False  # whether the reverse is asked for
        self.reversed = False  # whether a method has done so already
        self.placed_by_batches = False
        self.delays = np.empty(0, np.uint64)
        self.tuning = Tuning.of(self.team.size)
        self.lists: Array | None = None  # of cpu_leveled
        self.ends: Array | None = None
        self.free: Array | None = None  # of cpu_search
        self._sorting: dict[int, tuple[Array, Array, Array]] = {}

    @functools.cached_property
    def mark(self) -> Array:
        """Which vertices are placed; batches that place all of them at once do without."""
        return np.full(self.n, cpu_serial.FREE, np.uint8)

    def sorting(self, members: int) -> tuple[Array, Array, Array]:
        """Buffers to sort children in, for each member."""
        if members not in self._sorting:
            room = max(1, self.longest)
            self._sorting[members] = (
                np.empty((members, room), np.uint64),
                np.empty((members, room), np.uint64),
                np.empty((members, BINS), np.uint64),
            )
        return self._sorting[members]

    def delayed(self, seed: int) -> None:
        """Have members wait for random whiles between phases, for tests."""
        rng = np.random.default_rng(seed)
        self.delays = rng.integers(1, 1 << 63, 16 * self.team.size, dtype=np.uint64)

    # One component, by one method.  Each places it from `at` on, and leaves its facts.

    def serial(self, start: int, queue: Array, at: int, limit: int, most: Any = NO_LIMIT) -> None:
        keys, other, bins = (array[0] for array in self.sorting(1))
        self.alone.run(
            cpu_serial.order_serial, self.indptr, self.indices, self.unsigned(start), self.mark,
            queue, np.uint64(at), np.uint64(limit), np.uint64(most), np.uint64(self.shift),
            keys, other, bins, self.facts,
        )  # fmt: skip

    def leveled(
        self, start: int, queue: Array, at: int, limit: int, most: Any = NO_LIMIT, wide: int = 0
    ) -> None:
        cpu_leveled.order(self, start, queue, at, limit, most, wide)

    def hybrid(self, start: int, queue: Array, at: int, limit: int, most: Any = NO_LIMIT) -> None:
        self.leveled(start, queue, at, limit, most, cpu_leveled.WIDE_ARCS)

    def unordered(self, start: int, queue: Array, at: int, limit: int) -> None:
        cpu_unordered.order(self, start, queue, at, limit)

    def batch_basic(self, start: int, queue: Array, at: int, limit: int) -> None:
        cpu_batch_host.order(self, start, queue, at, limit, basic=True)

    def batch(self, start: int, queue: Array, at: int, limit: int) -> None:
        cpu_batch_host.order(self, start, queue, at, limit, basic=False)

    def levels(self, start: int, queue: Array, at: int, limit: int, most: Any = NO_LIMIT) -> None:
        if self.free is None:
            self.free = np.empty(self.n, self.unsigned)
        self.alone.run(
            cpu_search.find_levels, self.indptr, self.indices, self.unsigned(start), self.mark,
            queue, np.uint64(at), np.uint64(most), self.free, self.facts,
        )  # fmt: skip

    def searcher(self) -> Callable[..., None]:
        """A method that counts levels, for the search of a start; an order if it may."""
        if self.longest * self.n >= cpu_search.SKEW * self.indices.size:
            return self.levels
        return self.auto()

    def auto(self) -> Callable[..., None]:
        """The method that "auto" takes."""
        few = self.method == "auto" and self.indices.size < TEAM_ARCS
        if self.method == "serial" or self.team.size == 1 or few:
            return self.serial
        return self.leveled if self.method == "leveled" else self.hybrid

    def orderer(self) -> Callable[..., None]:
        return self.auto() if self.method == "auto" else getattr(self, self.method)

    def placer(self) -> Callable[..., None]:
        """The method for a component whose start is given: no search has ordered it already."""
        if self.method == "auto" and self.suits_batches():
            return self.batch
        return self.orderer()

    def suits_batches(self) -> bool:
        return (
            self.team.size >= BATCH_THREADS
            and self.indices.size >= max(BATCH_ARCS, BATCH_DEGREE * self.n)
            and self.longest <= EVEN_ROW
        )

    def place(self, start: int, at: int, limit: int) -> int:
        """Order the component of a given start; returns where it ends."""
        begun = time.perf_counter()
        method = self.placer()
        method(start, self.queue, at, limit)
        self.placed_by_batches = method == self.batch
        self.seconds["order"] += time.perf_counter() - begun
        return int(self.facts[END])

    def set_marks(self, queue: Array, a: int, b: int, value: Any) -> None:
        """Mark the vertices at places a to b, which may be all."""
        if b - a == self.n:
            self.mark.fill(value)
        else:
            self.mark[queue[a:b]] = value

    def search_and_place(self, first: int, at: int, limit: int) -> tuple[int, int]:
        """Find the start of the component of `first`, and order it from there.

        Returns the end, and how many searches it took.
        """
        if self.small:
            return self._try_and_place(first, at, limit)
        begun = time.perf_counter()
        search = self.searcher()
        kept, spare = self.queue, np.empty(self.n, self.unsigned)
        searches = self._from_least(first, at, limit)
        end, levels, width, last = (int(x) for x in self.facts[[END, LEVELS, WIDTH, LAST]])
        start = int(kept[at])
        while True:
            x = self._least(kept[last:end])
            self.set_marks(kept, at, end, cpu_serial.FREE)
            search(x, spare, at, end, width)
            searches += 1
            if self.facts[CODE] != WHOLE:
                self.set_marks(kept, at, end, cpu_serial.PLACED)
                self.facts[[END, LEVELS, WIDTH, LAST, CODE]] = end, levels, width, last, WHOLE
                break
            self.expect(end)
            kept, spare, start = spare, kept, x
            narrower = levels, width
            levels, width, last = (int(x) for x in self.facts[[LEVELS, WIDTH, LAST]])
            if levels <= narrower[0]:
                break
        if kept is not self.queue:
            self.queue[at:end] = kept[at:end]
        self.seconds["search"] += time.perf_counter() - begun
        if search != self.orderer():
            self.set_marks(self.queue, at, end, cpu_serial.FREE)
            self.place(start, at, end)
            self.expect(end)
        return end, searches

    def expect(self, end: int) -> None:
        if self.facts[END] != end:  # in a symmetric pattern every search reaches all
            raise not_symmetric("reverse_cuthill_mckee")

    def _try_and_place(self, first: int, at: int, limit: int) -> tuple[int, int]:
        """`search_and_place` in a small graph."""
        begun = time.perf_counter()
        self.serial(first, self.queue, at, limit)
        end = int(self.facts[END])
        keys, other, bins = (array[0] for array in self.sorting(1))
        self.alone.run(
            cpu_serial.try_starts, self.indptr, self.indices, self.mark, self.queue,
            np.uint64(at), np.uint64(end), np.uint64(self.shift), keys, other, bins, self.facts,
            errors=ERRORS,
        )  # fmt: skip
        tried = int(self.facts[TRIED])
        self.seconds["search"] += time.perf_counter() - begun
        if self.method not in ("auto", "serial"):
            self.set_marks(self.queue, at, end, cpu_serial.FREE)
            self.place(int(self.queue[at]), at, end)
            self.expect(end)
        return end, tried

    def _from_least(self, first: int, at: int, limit: int) -> int:
        """Order the component of `first` from its vertex of least (degree, vertex).

        The least of all free vertices is in it, as a rule: then there is nothing to look for.
        """
        search, tried = self.searcher(), []
        guessed = -1
        for _ in range(GUESSES):
            guess = self._least_free()
            search(guess, self.queue, at, limit)
            if self.mark[first] == cpu_serial.PLACED:
                guessed = guess
                break
            tried.append(self.queue[at : int(self.facts[END])].copy())
        for members in tried:  # of other components, whose turn comes later
            self.mark[members] = cpu_serial.FREE
        if guessed >= 0:
            return 1 + len(tried)
        search(first, self.queue, at, limit)
        end = int(self.facts[END])
        least = self._least(self.queue[at:end])
        self.set_marks(self.queue, at, end, cpu_serial.FREE)
        search(least, self.queue, at, end)
        self.expect(end)
        return 2 + len(tried)

    def _least_free(self) -> int:
        best = np.empty((self.team.size, 2), np.int64)
        self.team.run(_least_free, self.indptr, self.mark, best)
        return int(best[best[:, 0].argmin(), 1])  # argmin takes the first of equals

    def _least(self, vertices: Array) -> int:
        """The vertex of least (degree, vertex)."""
        v = vertices.astype(np.int64)
        degree = (self.indptr[v + 1] - self.indptr[v]).astype(np.int64)
        return int(v[degree == degree.min()].min())


def order(
    view: Any,
    starts: Array,
    method: str,
    reverse: bool,
    *,
    stats: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    tuning: Tuning | None = None,
) -> tuple[Array, dict[str, Any]]:
    run = Run(view, method, stats, threads)
    if seed is not None:  # tests only, as is `tuning`
        run.delayed(seed)
    if tuning is not None:
        run.tuning = tuning
    n = run.n
    run.reverse = reverse
    state = np.zeros(7, np.int64)  # vertex, place, given start; code, components, levels, searches
    firsts = np.empty(0, np.int64)
    if starts.size == 1:
        # order its component at once: where it belongs, its smallest vertex tells
        end = run.place(int(starts[0]), 0, n)
        smallest = int(run.queue[:end].min()) if end < n else 0
        state[4:6] += 1, run.facts[LEVELS]
        if smallest > 0:
            block = run.queue[:end].copy()
            _walk(run, state, firsts, starts, smallest)
            at = int(state[1])
            run.queue[at : at + end] = block
            state[1] = at + end
        else:
            state[1] = end
        state[0] = smallest + 1
    elif starts.size:
        firsts, starts = _owners(view, starts, threads)
    _walk(run, state, firsts, starts, n)
    if state[1] != n:
        raise not_symmetric("reverse_cuthill_mckee")
    if reverse and not run.reversed:
        run.team.run(_reversed, run.queue)
    return run.queue.view(run.kind), _counted(run, state)


def start_of(view: Any, vertex: int, *, threads: int | None = None) -> int:
    run = Run(view, "auto", False, threads)
    if view.indptr[vertex + 1] == view.indptr[vertex]:
        return vertex
    run.search_and_place(vertex, 0, run.n)
    return int(run.queue[0])


def _walk(run: Run, state: Array, firsts: Array, starts: Array, stop: int) -> None:
    """Place all components whose smallest vertices are below `stop`."""
    keys, other, bins = (array[0] for array in run.sorting(1))
    while state[0] < stop and state[1] < run.n:
        begun = time.perf_counter()
        run.alone.run(
            cpu_serial.walk, run.indptr, run.indices, run.mark, run.queue, firsts, starts, state,
            np.uint64(stop), run.small, np.uint64(SMALL_ARCS), np.uint64(run.shift),
            keys, other, bins, errors=ERRORS,
        )  # fmt: skip
        run.seconds["order"] += time.perf_counter() - begun
        if state[3] == WHOLE:
            return
        first, at, given = (int(x) for x in state[:3])
        if given < firsts.size and firsts[given] == first:
            end = run.place(int(starts[given]), at, run.n)
            state[2] += 1
        else:
            end, searches = run.search_and_place(first, at, run.n)
            state[6] += searches
        state[0], state[1] = first + 1, end
        state[4:6] += 1, run.facts[LEVELS]


def _owners(view: Any, starts: Array, threads: int | None) -> tuple[Array, Array]:
    """The smallest vertices of the components of the given starts, ascending, and the starts."""
    from matchwood import csr

    G = csr.as_graph((view.indptr, view.indices), "start", index_dtype=view.indptr.dtype)
    count, labels = connected_components(G, threads=threads)
    smallest = np.full(count, view.n, np.int64)
    np.minimum.at(smallest, labels, np.arange(view.n))
    owner = labels[starts]
    order = np.lexsort((starts, owner))
    owner, starts = owner[order], starts[order]
    twice = np.flatnonzero(np.diff(owner) == 0)
    if twice.size:
        a, b = starts[twice[0]], starts[twice[0] + 1]
        raise ValueError(f"start: vertices {a} and {b} are in one component")
    return smallest[owner], starts


def _counted(run: Run, state: Array) -> dict[str, Any]:
    levels = int(state[5])
    method = run.method
    if method == "auto":
        method = "serial" if run.auto() == run.serial else "leveled"
        if run.placed_by_batches:
            method = "batch"
    return {
        "method": method,
        "threads": run.team.size,
        "components": int(state[4]),
        "levels": levels,
        "front": run.n / max(1, levels),
        "searches": int(state[6]),
        "seconds": run.seconds,
        **run.counters,
    }
