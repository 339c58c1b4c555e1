"""Colour propagation, as in the thesis: every vertex takes the smallest colour around it.

A colour is a vertex; at first each vertex has its own.  A round looks at all neighbours once, so
the number of rounds is one more than the longest shortest path from a smallest vertex has edges.

    pull   a vertex of the row group looks at its neighbours in the column group; candidates are
           joined in the row, and what has changed goes to the columns
    push   a vertex of the row group offers its colour to its neighbours in the column group;
           candidates are joined in the column, and what has changed goes to the rows

Four switches, which the thesis turns on one after the other: sparse exchanges of what has changed
(SP), dense ones while much changes (SW), a queue of active vertices (VQ), and push.  It runs on the
CPU: of a graph on GPUs each rank copies its pattern to the host.

The thesis: algorithms 6.2 to 6.5 of [4] in ../../__init__.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import (
    atomic_add,
    atomic_max,
    atomic_min,
    crew,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
)
from matchwood.engines.ranks.exchanges.packing import pack_values, unpack_values
from matchwood.engines.ranks.exchanges.routing import gather_messages, to_group
from matchwood.primitives.transpose.cpu import transpose

Array = np.ndarray[Any, Any]


# A round on one block: rows pull from columns, or push to them
#
# Colours that are read are those of the round before, and are not changed here; what is found goes
# to `known`.  So a round does not depend on the number of threads.  Races: `known` only goes down,
# by an atomic minimum, and a vertex is listed by the member that first raises its word of `seen`.


CHUNK = 512  # rows that a member takes at a time


@kernel
def _pull(
    team: Any, rows: Any, every: bool, active: Array, size: int, colour: Array, known: Array,
    found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, size)):
            v = i if every else active[i]
            least = known[v]
            for k in range(indptr[v], indptr[v + 1]):
                least = min(least, colour[indices[k]])
            if least < known[v]:
                known[v] = least
                found[atomic_add(tail, 0, 1)] = v
        chunk = next_chunk(team, size, CHUNK)


def pull(
    rows: Any, active: Array | None, colour: Array, known: Array, threads: int | None
) -> Array:
    """Set `known` of rows that have a neighbour of a smaller colour; returns them, ascending."""
    size = known.size if active is None else active.size
    found, tail = np.empty(size, np.int64), np.zeros(1, np.int64)
    every = active is None
    listed = np.empty(0, np.int64) if active is None else active
    crew(threads, work=rows[1].size).run(
        _pull, rows, every, listed, size, colour, known, found, tail
    )
    return np.sort(found[: tail[0]])


@kernel
def _push(
    team: Any, rows: Any, every: bool, active: Array, size: int, colour: Array, known: Array,
    seen: Array, number: int, found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, size)):
            u = i if every else active[i]
            mine = colour[u]
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if mine >= load_relaxed(known, v) or atomic_min(known, v, mine) <= mine:
                    continue
                if atomic_max(seen, v, number) < number:
                    found[atomic_add(tail, 0, 1)] = v
        chunk = next_chunk(team, size, CHUNK)


def push(
    rows: Any, active: Array | None, colour: Array, known: Array, seen: Array, number: int,
    threads: int | None,
) -> Array:  # fmt: skip
    """Lower `known` of columns next to a row of a smaller colour; returns their local ids."""
    indptr, indices = rows
    size = indptr.size - 1 if active is None else active.size
    found, tail = np.empty(min(known.size, indices.size), np.int64), np.zeros(1, np.int64)
    every = active is None
    listed = np.empty(0, np.int64) if active is None else active
    crew(threads, work=indices.size).run(
        _push, rows, every, listed, size, colour, known, seen, number, found, tail
    )
    return found[: tail[0]]


@kernel
def _mark(team: Any, rows: Any, given: Array, marks: Array) -> None:
    indptr, indices = rows
    chunk = next_chunk(team, given.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, given.size)):
            if interrupted(team, i):
                return
            for k in range(indptr[given[i]], indptr[given[i] + 1]):
                atomic_max(marks, indices[k], 1)
        chunk = next_chunk(team, given.size, CHUNK)


def neighbours(rows: Any, given: Array, threads: int | None) -> Array:
    """The entries of these rows, each once, ascending."""
    indptr, indices = rows
    marks = np.zeros(indptr.size - 1, np.int32)
    crew(threads, work=indices.size).run(_mark, rows, given, marks)
    return np.flatnonzero(marks)


# Rounds


class Variant(NamedTuple):
    """Which of the switches are on."""

    sparse: bool = True
    dense: bool = True
    queue: bool = True
    push: bool = True


VARIANTS = {
    "colour": Variant(),
    "colour/base": Variant(sparse=False, queue=False, push=False),
    "colour/+SP": Variant(dense=False, queue=False, push=False),
    "colour/+SP+SW": Variant(queue=False, push=False),
    "colour/+SP+SW+VQ": Variant(push=False),
}


def smallest(G: Any, variant: Variant, threads: int | None) -> tuple[Array, int]:
    """The smallest vertex of the component of each own vertex, and the number of rounds."""
    colours = (_Pushed if variant.push else _Pulled)(G, variant, threads)
    rounds = 0
    while True:
        rounds += 1
        changed = colours.one_round(rounds)
        total = int(G.comm.allreduce(np.array([changed], np.int64), "sum")[0])
        G.comm.report(rounds, total)
        if total == 0:
            return colours.own, rounds


class _Colours:
    """The state of a rank.

    Attributes
    ----------
    own : array
        The colours of own vertices, by place.
    colour : array
        Those of the vertices that are looked at, by local id.
    known : array
        The smallest colours that this rank has seen of the vertices that get new ones: what is not
        smaller need not be sent.
    active : array or None
        Rows to look at; None: all.
    """

    def __init__(self, G: Any, variant: Variant, threads: int | None) -> None:
        self.variant, self.exchange, self.grid, self.threads = variant, G.exchange, G.grid, threads
        grid = self.grid
        self.rows = tuple(engines.moved(array, "cpu") for array in G.undirected_pattern()[:2])
        kind = np.int32 if grid.n <= np.iinfo(np.int32).max else np.int64
        self.colour = grid.original_local().astype(kind)
        self.own = grid.original_owned().astype(kind)
        self.to_local = grid.columns_to_local
        self.active: Array | None = None

    def is_dense(self, count: int) -> bool:
        """Whether candidates are sent for the whole group; this rank has `count` of them."""
        if not self.variant.sparse:
            return True
        return self.variant.dense and not self.exchange.sparse_pays(count)

    def lower(self, places: Array, values: Array) -> tuple[Array, Array]:
        """Lower own colours to these values; returns the places and values that have changed."""
        smaller = values < self.own[places]
        places, values = places[smaller], values[smaller]
        self.own[places] = values
        return places, values

    def replace(self, values: Array) -> int:
        """Set the colours of all own vertices; returns how many have changed."""
        changed = int(np.count_nonzero(values < self.own))
        self.own = np.ascontiguousarray(values)
        return changed


class _Pulled(_Colours):
    """Rows look at columns; the columns' colours are always those of the owners."""

    def __init__(self, G: Any, variant: Variant, threads: int | None) -> None:
        super().__init__(G, variant, threads)
        self.known = self.colour[: self.grid.n_rows].copy()
        self.seen_by: tuple[Array, Array] | None = None
        if variant.queue:  # the rows that look at a column
            indptr, indices = self.rows
            indptr, indices, _ = transpose(
                indptr, indices, None, self.grid.n_local, threads=threads
            )
            self.seen_by = (indptr, indices)

    def one_round(self, number: int) -> int:
        """Returns how many own vertices have another colour."""
        grid, exchange = self.grid, self.exchange
        found = pull(self.rows, self.active, self.colour, self.known, self.threads)
        if self.is_dense(found.size):
            values = exchange.pull(self.known, "min")
            positions = np.flatnonzero(values < self.colour[self.to_local])
            self._columns(positions, values[positions])
            return self.replace(values[grid.owned_columns])
        if exchange.kind == "thesis":
            places, values = _gathered(exchange.row, found, self.known, grid.owned_rows)
        else:
            places, values = exchange.fold_changed(found, self.known[found], "min")
        places, values = self.lower(places, values)
        self._columns(*exchange.expand_changed(places, values))
        return int(places.size)

    def _columns(self, positions: Array, values: Array) -> None:
        changed = self.to_local[positions]
        self.colour[changed] = values
        mine = changed[changed < self.grid.n_rows]  # own vertices are rows as well
        self.known[mine] = np.minimum(self.known[mine], self.colour[mine])
        if self.seen_by is not None:
            self.active = neighbours(self.seen_by, changed, self.threads)


class _Pushed(_Colours):
    """Rows offer their colours to columns; the rows' colours are always those of the owners."""

    def __init__(self, G: Any, variant: Variant, threads: int | None) -> None:
        super().__init__(G, variant, threads)
        grid = self.grid
        self.known = self.colour.copy()
        self.seen = np.zeros(grid.n_local, np.int64)  # the last round with a new colour
        self.position = np.full(grid.n_local, -1, np.int64)  # in the column group
        self.position[self.to_local] = np.arange(grid.n_columns)
        self.parts = [  # what each rank of the column owns of the group
            np.asarray(grid.columns_of(r, np.arange(count)))
            for r, count in enumerate(grid.column_counts)
        ]
        self.owner = np.empty(grid.n_columns, np.int64)
        self.place = np.empty(grid.n_columns, np.int64)
        for r, part in enumerate(self.parts):
            self.owner[part] = r
            self.place[part] = np.arange(part.size)

    def one_round(self, number: int) -> int:
        """Returns how many own vertices have another colour."""
        grid, exchange = self.grid, self.exchange
        found = push(
            self.rows, self.active, self.colour, self.known, self.seen, number, self.threads
        )
        if self.is_dense(found.size):
            own = self._joined(self.known[self.to_local])
            changed = self.replace(own)
            mine = exchange.expand_rows(own)
            self._rows(np.flatnonzero(mine < self.colour[: grid.n_rows]), None, mine)
            return changed
        positions = np.sort(self.position[found])
        values = self.known[self.to_local[positions]]
        places, values = self.lower(*self._sent(positions, values))
        self._rows(*exchange.expand_rows_changed(places, values))
        return int(places.size)

    def _rows(self, rows: Array, values: Array | None, whole: Array | None = None) -> None:
        self.colour[rows] = whole[rows] if whole is not None else values
        mine = rows[self.position[rows] >= 0]  # own vertices are columns as well
        self.known[mine] = np.minimum(self.known[mine], self.colour[mine])
        if self.variant.queue:
            self.active = rows

    def _joined(self, values: Array) -> Array:
        """Own values: the minimum over all ranks of the column."""
        column = self.exchange.column
        if self.exchange.kind == "thesis" and column.size > 1:
            return np.ascontiguousarray(column.allreduce(values, "min")[self.parts[column.rank]])
        sorted_by_owner = np.concatenate([values[part] for part in self.parts])
        return column.reduce_scatter(sorted_by_owner, [part.size for part in self.parts], "min")

    def _sent(self, positions: Array, values: Array) -> tuple[Array, Array]:
        """(own places, values) that the ranks of the column sent for own vertices."""
        grid, column = self.grid, self.exchange.column
        if self.exchange.kind == "thesis":
            known = np.full(grid.n_columns, grid.n, values.dtype)
            known[positions] = values
            return _gathered(column, positions, known, grid.owned_columns)
        owners = self.owner[positions]
        messages = []
        for r, part in enumerate(self.parts):
            mine = owners == r
            messages.append(pack_values(self.place[positions[mine]], values[mine], part.size))
        received = to_group(column, messages, values.dtype)
        return _least(*zip(*(unpack_values(m, grid.owned) for m in received), strict=True))


def _gathered(comm: Any, positions: Array, known: Array, own: Any) -> tuple[Array, Array]:
    """Send all candidates to all ranks of a group, as the thesis does; (own places, least values).

    `known` gets the smallest of all; `own` is where own vertices are in it.
    """
    message = np.concatenate([positions.astype(known.dtype), known[positions]])
    for part in gather_messages(comm, message):
        theirs, values = part.reshape(2, -1)
        known[theirs] = np.minimum(known[theirs], values)
    mine = known[own]
    return np.arange(mine.size), mine


def _least(places: tuple[Array, ...], values: tuple[Array, ...]) -> tuple[Array, Array]:
    """Each place once, ascending, with the smallest of its values."""
    where, what = np.concatenate(places), np.concatenate(values)
    order = np.lexsort((what, where))
    where, what = where[order], what[order]
    new = np.ones(where.size, bool)
    new[1:] = where[1:] != where[:-1]
    return where[new], what[new]
