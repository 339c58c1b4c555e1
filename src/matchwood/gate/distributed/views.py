"""The rules of gate/graph.py for a block: duplicates, directions, magnitudes, and the errors.

A block is a View over all local ids.  Its rows are in the order of the user's ids of the columns.
Facts are those of the whole matrix: every rank finds its part, then all agree.  So are errors:
each names the entry that one machine would have named.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from matchwood import engines
from matchwood.gate import inputs, refusals
from matchwood.gate.distributed import collecting, sources
from matchwood.gate.distributed.sources import Source
from matchwood.gate.views import View
from matchwood.primitives.assemble.cpu import distinct_before, merge_duplicates
from matchwood.primitives.inspect import Symmetry, Values, keys
from matchwood.primitives.symmetrize.cpu import GREATEST, LEAST, WAYS, merge, without_loops
from matchwood.primitives.transpose.cpu import NO_DATA

RULES = {**WAYS, "least": LEAST, "greatest": GREATEST}
INT32_MAX = np.iinfo(np.int32).max


class Blocks:
    """What the views need to know of the graph: who keeps what, and how vertices are numbered.

    `names` are the user's ids of the local ids; `column_local` are the local ids of the column
    group, ascending by the user's ids.
    """

    def __init__(self, comm: Any, grid: Any, order: Any) -> None:
        self.comm, self.grid, self.order = comm, grid, order
        self.threads = comm.threads
        inside = grid.original_local()
        self.names = engines.frozen(inside if order is None else order.user(inside))
        columns = grid.columns_to_local
        self._sorted = None  # column position -> place among the columns by the user's ids
        if order is not None:
            by_user = np.argsort(self.names[columns])
            self._sorted = np.empty_like(by_user)
            self._sorted[by_user] = np.arange(by_user.size)
            columns = columns[by_user]
        self.column_local = engines.frozen(columns)
        self.key = keys.Key(*(np.uint64(k) for k in comm.objects(tuple(map(int, keys.key())))[0]))

    def block(self, u: Any, v: Any, data: Any, kind: Any) -> View:
        """The block of the entries that all ranks pass, equal ones together; `u`, `v`: user ids."""
        source = sources.of_arrays(u, v, data, None if data is None else data.dtype)
        return self.collected(source, kind)[0]

    def collected(self, source: Source, kind: Any, reduce: str = "keep") -> tuple[View, int]:
        """The block of all entries of all ranks, and how many of them this rank received.

        `kind` is the type of indices; None: as small as fits all blocks.
        """
        collector = self.collector(source.entries, source.kind)
        collector.collect(source.parts(), self.most(source.rounds))
        return self.finished(collector, kind, reduce), collector.received

    def collector(self, entries: int, kind: Any) -> collecting.Collector:
        """A Collector for `entries` entries of this rank, with values of type `kind` or None."""
        expected = self.total(entries)[0]
        return collecting.Collector(self.comm, self.grid, self.order, expected, kind)

    def finished(self, collector: collecting.Collector, kind: Any, reduce: str = "keep") -> View:
        """The View of what was collected, with indices of that type; None: as small as fits."""
        indptr, indices, data = collector.block(self._sorted, reduce)
        if kind is None:  # also where all entries of all ranks would need more
            small = max(self.grid.n, self.most(indices.size)) <= INT32_MAX
            kind = np.dtype(np.int32 if small else np.int64)
        return View(self._all_rows(indptr, kind), self.to_local(indices, kind), data)

    def _all_rows(self, indptr: Any, kind: Any) -> Any:
        """Row ends for all local ids: those of the column group alone have no entries here."""
        whole = np.empty(self.grid.n_local + 1, kind)
        whole[: indptr.size] = indptr
        whole[indptr.size :] = indptr[-1]
        return whole

    def to_local(self, columns: Any, kind: Any) -> Any:
        """Local ids of columns that are given by their place among the user's ids."""
        out = columns if columns.dtype == kind else np.empty(columns.size, kind)
        return self._cpu().renamed(columns, self.column_local, out, self.threads)

    def from_local(self, view: View, kind: Any, shift: int) -> View:
        """The same view, its columns by place among the user's ids, and shifted."""
        place = np.full(self.grid.n_local, -1, np.int64)
        place[self.column_local] = np.arange(self.column_local.size)
        out = np.empty(view.indices.size, kind)
        self._cpu().renamed(view.indices, place, out, self.threads, shift)
        return View(view.indptr.astype(kind, copy=False), out, view.data)

    def _cpu(self) -> Any:
        return engines.load("matchwood.gate.distributed", "cpu")

    def _inspect(self) -> Any:
        return engines.load("matchwood.primitives.inspect", "cpu")

    # Facts

    def total(self, *numbers: int) -> list[int]:
        """The sums over all ranks, modulo 2^64."""
        return [int(k) for k in self.comm.allreduce(np.array(numbers, np.int64), "sum")]

    def most(self, number: int) -> int:
        return int(self.comm.allreduce(np.array([number], np.int64), "max")[0])

    def symmetry(self, view: View) -> Symmetry:
        """Loops, and whether the pattern is symmetric."""
        given = (view.indptr, view.indices, self.names, self.key, self.threads)
        loops, one, two = self.total(*self._inspect().symmetry_sums(*given))
        return Symmetry(loops, one == two == 0)

    def values(self, view: View) -> Values:
        """Facts about values.  `at` is not 0 where one is not finite; see `raise_infinite`."""
        bad, least, most, sums = self._inspect().value_sums(
            (view.indptr, view.indices, view.data), self.names, self.key, self.threads
        )
        extremes = self.comm.allreduce(np.array([-least, most, float(bad >= 0)]), "max")
        if extremes[2]:
            return Values(False, 0, 0.0, 0.0, 0, False, False)
        least, most = -float(extremes[0]), float(extremes[1])
        if least > most:
            least = most = 0.0
        zeros, one, two, _, negative = self.total(*sums)
        return Values(True, -1, least, most, zeros, one == two == 0, negative > 0)

    # Views

    def joined(self, view: View, rule: str, ascending: bool, caller: str) -> View:
        """The values as weights, duplicates joined by that rule."""
        integers = view.data.dtype.kind in "iu"
        self._refuse_large(view.data, caller)
        weights = inputs.as_weights(view.data, caller)
        given = view._replace(data=weights)
        if ascending:
            return given
        if rule != "sum":
            self.refuse_infinite(given, caller)
        found = View(*merge_duplicates(*given, reduce=rule, threads=self.threads))
        if rule == "sum":
            self._refuse_overflow(weights, found.data, integers, caller)
        return found

    def union(self, view: View, rule: str) -> View:
        """The block of the union with the transpose, without loops.  Data may be None.

        `rule` joins the values of both directions: "sum", "max" and "min" of magnitudes, where
        edges of weight zero are left out, or "least" and "greatest" of the values themselves.
        """
        kind, data = view.indices.dtype, NO_DATA if view.data is None else view.data
        mirror = self.mirror(view)
        shift = self.grid.n_rows  # no column looks like its row: `merge` would leave it out
        wide = kind if shift + self.grid.n_columns <= np.iinfo(kind).max else np.dtype(np.int64)
        mine = self.from_local(view._replace(data=data), wide, shift)
        theirs = self.from_local(
            mirror._replace(data=NO_DATA if view.data is None else mirror.data), wide, shift
        )
        indptr, indices, values = merge(mine, theirs, RULES[rule], threads=self.threads)
        del mine, theirs
        indices -= indices.dtype.type(shift)
        kind = self.agreed_kind(kind, indices.size)
        found = View(indptr.astype(kind, copy=False), self.to_local(indices, kind), values)
        return self.without_loops(found if view.data is not None else found._replace(data=None))

    def agreed_kind(self, kind: Any, entries: int) -> Any:
        """The type of indices, wider where a rank has more entries than it can count."""
        return np.dtype(np.int64) if self.most(entries) > np.iinfo(kind).max else np.dtype(kind)

    def without_loops(self, view: View) -> View:
        return View(*without_loops(*view, zeros=True, threads=self.threads))

    def mirror(self, view: View) -> View:
        lengths = np.diff(view.indptr)
        rows = np.repeat(self.names, lengths).astype(self._id_kind(), copy=False)
        columns = self.names[view.indices].astype(self._id_kind(), copy=False)
        return self.block(columns, rows, view.data, view.indices.dtype)

    def diagonal(self, view: View) -> Any:
        """The values a_ii of the row group that are in this block; 0 where none is."""
        found = np.zeros(self.grid.n_rows, view.data.dtype)
        self._cpu().diagonal(view, found, self.threads)
        return found

    def _id_kind(self) -> Any:
        return np.int32 if self.grid.n <= INT32_MAX else np.int64

    def distinct(self, view: View) -> int:
        """Entries of this rank, equal ones counted once."""
        return int(distinct_before(view.indptr, view.indices, self.threads)[-1])

    # Errors, the same on all ranks

    def raise_duplicates(self, view: View, caller: str) -> NoReturn:
        """Raise the error that names an entry given more than once; a rank must have one."""
        twice = np.zeros(view.nnz, np.bool_)
        twice[1:] = view.indices[1:] == view.indices[:-1]
        starts = view.indptr[:-1]
        twice[starts[starts < view.nnz]] = False
        row, column, _ = self._first(view._replace(data=np.zeros(view.nnz)), twice)
        raise refusals.duplicate(caller, row, column)

    def refuse_infinite(self, view: View, caller: str) -> None:
        good = abs(view.data) < np.inf  # false for NaN
        if bool(self.comm.allreduce(np.array([not good.all()]), "or")[0]):
            self.raise_infinite(view, caller)

    def raise_infinite(self, view: View, caller: str) -> NoReturn:
        """Raise the error that an entry is not finite, the first by row and column."""
        row, column, value = self._first(view, ~(abs(view.data) < np.inf))
        raise refusals.infinite(caller, value, row, column)

    def _first(self, view: View, bad: Any) -> tuple[int, int, float]:
        """(row, column, value) of the first bad entry of all ranks; there must be one."""
        mine = None
        where = np.flatnonzero(bad)
        if where.size:
            rows = self.names[np.searchsorted(view.indptr, where, "right") - 1]
            where = where[rows == rows.min()]
            at = where[0]  # columns of a row are ascending
            mine = (int(rows.min()), int(self.names[view.indices[at]]), float(view.data[at]))
        found = [each for each in self.comm.objects(mine) if each is not None]
        first: tuple[int, int, float] = min(found, key=lambda each: each[:2])
        return first

    def _refuse_large(self, values: Any, caller: str) -> None:
        """Raise where integers of any rank are not exact in float64."""
        kind = values.dtype
        if kind.kind in "iu" and kind.itemsize == 8:
            low, high = (values.min(), values.max()) if values.size else (kind.type(0),) * 2
            low = self.comm.allreduce(np.array([low], kind), "min")
            high = self.comm.allreduce(np.array([high], kind), "max")
            inputs.as_weights(np.concatenate([low, high]), caller)

    def _refuse_overflow(self, given: Any, sums: Any, integers: bool, caller: str) -> None:
        limit = float(np.finfo(sums.dtype).max)
        over = not bool((abs(sums) <= limit).all())
        unsound = not bool((abs(given) <= limit).all())
        largest = float(abs(sums).max()) if integers and sums.size else 0.0
        facts = self.comm.allreduce(np.array([float(over), float(unsound), largest]), "max")
        refusals.refuse_sums(bool(facts[0]) and not facts[1], float(facts[2]), caller)

    def refuse_overflow_of_directions(self, view: View, caller: str) -> None:
        """Raise unless all ``|a_ij| + |a_ji|`` are finite."""
        bad = ~(abs(view.data) <= float(np.finfo(view.data.dtype).max))
        if bool(self.comm.allreduce(np.array([bad.any()]), "or")[0]):
            row, column, _ = self._first(view, bad)
            raise refusals.overflow_of_directions(caller, row, column)
