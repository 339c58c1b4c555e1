"""Exchanges of vertex values between the ranks of a grid.

    fold      every rank has a value for each vertex of its row group; the owners get them joined
    expand    the owners have values; the ranks that have the vertex in their column group (or in
              their row group) get them
    packets   values for any vertices go to the owners of these

Fold and expand have two forms: dense, where every vertex has a value, and sparse, for those
vertices whose values have changed.  A round of a method that pulls is a fold and then an expand.
Ranks of a row (or a column) are the ranks of `row` (or `column`) in the order of their numbers.

Every function here is called by all ranks.  Read on in cpu.py (what is done on one's own rank),
routing.py (`Routed`: values for chosen ranks) and packing.py (marked places in few words).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines.ranks.exchanges import cpu, routing
from matchwood.engines.ranks.exchanges.cpu import places_by_owner as places_by_owner
from matchwood.engines.ranks.exchanges.routing import Record as Record
from matchwood.engines.ranks.exchanges.routing import Routed as Routed
from matchwood.engines.ranks.exchanges.routing import by_destination as by_destination

KINDS = ("own", "thesis")


_SPLIT: weakref.WeakKeyDictionary[Any, dict[tuple[int, int], tuple[Any, Any]]] = (
    weakref.WeakKeyDictionary()
)


def _groups(comm: Any, grid: Any) -> tuple[Any, Any]:
    """The communicators of this rank's row and column, made once for a shape of the grid.

    MPI libraries have room for some thousand communicators, and programs may make more graphs.
    """
    made = _SPLIT.setdefault(comm, {})
    shape = (grid.R, grid.C)
    if shape not in made:
        made[shape] = (comm.split(grid.r, grid.c), comm.split(grid.c, grid.r))
    return made[shape]


class Exchange:
    """The exchanges of one grid, on one rank.

    Attributes
    ----------
    comm, row, column : Communicator
        All ranks; those of this rank's row (C of them) and column (R of them).
    kind : {"own", "thesis"}
        "thesis" joins by an allreduce in the row and sends by broadcasts in the column, as the
        paper does, for comparison.
    """

    def __init__(self, comm: Any, grid: Any, order: Any = None, kind: str = "own") -> None:
        self.comm, self.grid, self.order, self.kind = comm, grid, order, kind
        self.row, self.column = _groups(comm, grid)
        self.threads = getattr(comm, "threads", None)

    def with_kind(self, kind: str) -> Exchange:
        """The same exchanges, of that kind, over the same communicators."""
        other = object.__new__(Exchange)
        other.__dict__.update(self.__dict__)
        other.kind = kind
        return other

    # Dense

    def fold(self, values: Any, op: str = "sum") -> Any:
        """Own values, by place: the `values` of all ranks of the row, by row position, joined."""
        xp = engines.xp(values)
        if self.row.size == 1:
            return values.copy()
        if self._striped(values):
            counts = self.grid.row_counts
            flat = cpu.reordered(np.ascontiguousarray(values), counts, True, self.threads)
            return self.row.reduce_scatter(flat, counts, op)
        parts = self.grid.split_rows(values)
        counts = [int(part.shape[0]) for part in parts]
        return self.row.reduce_scatter(xp.concatenate(parts), counts, op)

    def _striped(self, values: Any) -> bool:
        """Whether kernels order an array over a group by owner, or back."""
        striped = self.grid.layout == "stripes" and engines.xp(values) is np
        return striped and values.size >= cpu.STRIPED_ELEMENTS and values.itemsize in (1, 2, 4, 8)

    def expand(self, own: Any) -> Any:
        """Values over the column group, by position, from own values, by place."""
        return self._gathered_all(self.column, own, self.grid.column_counts, self.grid.join_columns)

    def expand_at(self, own: Any, places: Any) -> Any:
        """Values of the column group at some places of what its ranks have, one after the other.

        All ranks have as many, in arrays of the host.  They are read where they lie, if possible:
        by position they would be sorted first.  `places_by_owner` makes places of positions.
        """
        column = self.column
        values = own if column.size == 1 else column.allgather(own, borrowed=True)
        return cpu.taken(values, places, self.threads)

    def expand_rows(self, own: Any) -> Any:
        """Values over the row group, by position, from own values, by place."""
        return self._gathered_all(self.row, own, self.grid.row_counts, self.grid.join_rows)

    def _gathered_all(self, comm: Any, own: Any, counts: list[int], join: Any) -> Any:
        own = engines.xp(own).ascontiguousarray(own)
        if comm.size == 1:
            return own.copy()
        even = min(counts) == max(counts)
        flat = comm.allgather(own) if even else comm.allgatherv(own)[0]
        if self._striped(flat):
            return cpu.reordered(flat, counts, False, self.threads)
        ends = np.cumsum([0, *counts])
        parts = [flat[ends[k] : ends[k + 1]] for k in range(comm.size)]
        return join(parts, engines.xp(own).empty(int(ends[-1]), own.dtype))

    def pull(self, values: Any, op: str = "sum") -> Any:
        """Values over the column group from values over the row group: fold, then expand."""
        return self.expand_by_kind(self.fold_by_kind(values, op))

    def fold_by_kind(self, values: Any, op: str = "sum") -> Any:
        """`fold`; as the thesis does it, by an allreduce in the row."""
        if self.kind != "thesis":
            return self.fold(values, op)
        whole = self.row.allreduce(values, op) if self.row.size > 1 else values
        return engines.xp(values).ascontiguousarray(whole[self.grid.owned_rows])

    def expand_by_kind(self, own: Any) -> Any:
        """`expand`; as the thesis does it, by one broadcast from each rank of the column."""
        if self.kind != "thesis":
            return self.expand(own)
        parts = [
            self.column.broadcast(own if root == self.column.rank else None, root)
            if count and self.column.size > 1
            else (own if root == self.column.rank else own[:0])
            for root, count in enumerate(self.grid.column_counts)
        ]
        whole = engines.xp(own).empty(self.grid.n_columns, own.dtype)
        return self.grid.join_columns(parts, whole)

    # Sparse

    def fold_changed(self, positions: Any, values: Any, op: str = "sum") -> tuple[Any, Any]:
        """(own places, values) of what the ranks of the row have for own vertices.

        `positions` are of the row group.  Each place occurs once, ascending.
        """
        if self.kind == "thesis" and self.row.size > 1:
            return self._fold_as_thesis(positions, values, op)
        to, places = self.grid.row_owner(positions)
        places, values = self._sent(self.row, to, [places, values])
        return self._joined(places, values, op)

    def expand_changed(self, places: Any, *values: Any) -> tuple[Any, ...]:
        """(column positions, values): what the ranks of the column have for their own places."""
        return self._gathered(self.column, places, values, self.grid.columns_of)

    def expand_rows_changed(self, places: Any, *values: Any) -> tuple[Any, ...]:
        """(row positions, values): what the ranks of the row have for their own places."""
        return self._gathered(self.row, places, values, self.grid.rows_of)

    def _fold_as_thesis(self, positions: Any, values: Any, op: str) -> tuple[Any, Any]:
        """All ranks of the row get all changes, and join those that are theirs."""
        record = Record(positions.astype(index_type(self.grid.n), copy=False), values)
        flat, _ = self.row.allgatherv(record.packed)
        positions, values = record.unpacked(flat)
        to, places = self.grid.row_owner(positions.astype(np.int64))
        mine = to == self.grid.c
        return self._joined(places[mine], values[mine], op)

    def _gathered(self, comm: Any, places: Any, values: Any, positions: Any) -> tuple[Any, ...]:
        if comm.size == 1:
            return (positions(comm.rank, places), *values)
        record = Record(routing.narrowed(self.grid, places), *values)
        if self.kind == "thesis":  # one broadcast from each rank
            parts = [
                comm.broadcast(record.packed if root == comm.rank else None, root)
                for root in range(comm.size)
            ]
            flat = engines.xp(places).concatenate(parts)
            counts = np.array([part.shape[0] for part in parts])
        else:
            flat, counts = comm.allgatherv(record.packed)
        places, *found = record.unpacked(flat)
        xp = engines.xp(places)
        # as a list: CuPy repeats by lists
        ranks = xp.repeat(xp.arange(comm.size), (np.asarray(counts) // record.width).tolist())
        return (positions(ranks, places.astype(np.int64)), *found)

    def packets(self, ids: Any, *columns: Any) -> tuple[Any, ...]:
        """(own places, columns): what all ranks sent for own vertices.

        `ids` are vertices as the user numbers them.  The result is in the order of the sending
        ranks, and within these in the order in which it was given.
        """
        inside = ids if self.order is None else self.order.inside(ids)
        return self._sent(self.comm, self.grid.owner(inside), [self.grid.places(inside), *columns])

    def ask(self, ids: Any, *own: Any) -> Any:
        """What the owners have for these vertices, in the order of `ids`.

        `ids` are as the user numbers vertices; `own` are arrays over own places.  Returns one array
        for one, a tuple for several.
        """
        inside = ids if self.order is None else self.order.inside(ids)
        return routing.ask(self, inside, *own)

    def _sent(self, comm: Any, to: Any, columns: list[Any]) -> tuple[Any, ...]:
        """The columns of all ranks whose `to` is this one; the first are places."""
        if comm.size == 1:
            return (columns[0].astype(np.int64), *columns[1:])
        routed = Routed(comm, to, self.threads)
        places, *found = routed.send(routing.narrowed(self.grid, columns[0]), *columns[1:])
        return (places.astype(np.int64), *found)

    def _joined(self, places: Any, values: Any, op: str) -> tuple[Any, Any]:
        found: tuple[Any, Any] = engines.load(__name__, "cpu").joined(
            places, values, op, self.grid.owned, self.threads
        )
        return found

    def sparse_pays(self, count: int) -> bool:
        """Whether `count` changes of this rank, and those of all others, are better sent sparse.

        Dense exchanges send about n / R + n / C values, whatever has changed.  A sparse one sends
        a place and a value for each change, to R or C ranks.
        """
        total = int(self.comm.allreduce(np.array([count], np.int64), "sum")[0])
        return total * max(self.grid.R, self.grid.C) < self.grid.n
