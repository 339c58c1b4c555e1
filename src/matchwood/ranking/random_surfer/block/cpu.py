"""PageRank on the block of a rank: the sums of its rows, and the scores of its own vertices.

Between the two the ranks of a row group add up what each found (ranks).  gpu.py has the
same functions.  A block without weights whose entries are in columns all over it is read in tiles
(cpu_tiles.py); any other in windows, as on one machine (cpu_pull.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, kernel, next_chunk
from matchwood.ranking.random_surfer.block.cpu_tiles import TILE, Tiles, pull_tiles, tiles_of
from matchwood.ranking.random_surfer.cpu_pull import (
    ONE,
    WINDOW,
    Plan,
    as_unsigned,
    plan_of,
    pull_window,
)
from matchwood.ranking.random_surfer.cpu_scores import Jumps, held, jump_window, score_window

Array = np.ndarray[Any, Any]

BUSIEST = 1 << 12  # columns; what so many give, 32 KiB, stays in the nearest cache of a core
BUSY = TILE  # columns; what so many give, 512 KiB, stays in its second-level cache
SMALL = 2  # times BUSY: what so many columns give fits into the caches as it is
MOST = 64  # tiles; larger blocks were not measured
LOOK, LOOKS = 4096, 64  # entries at which a block is looked, and how often
SPREAD = 6  # tiles over which they must be spread: what these give is larger than most caches


class Block(NamedTuple):
    """Rows of the row group; columns are positions in the column group, as `given` is sorted.

    Where `order` is not empty, they are places in ``given[order]``.
    """

    indptr: Any
    columns: Any  # unsigned
    weights: Any  # empty where all arcs of a vertex are equally likely
    plan: Plan
    order: Any


class TiledBlock(NamedTuple):
    """The same without weights, in tiles."""

    indptr: Any
    tiles: Tiles
    order: Any


class Owned(NamedTuple):
    """What a rank knows of its own vertices."""

    scores: Any
    share: Any
    given: Any
    jumps: Jumps
    changes: Any  # of each window
    lost: Any  # of each window
    buffers: Any  # (members, WINDOW)


@kernel
def _pull(
    team: Any, block: Block, given: Array, sums: Array, firsts: Array, buffers: Array, zero: Any
) -> None:
    """Row v is element v div parts of the part that begins at firsts[v mod parts] in `sums`."""
    plan, parts = block.plan, np.uint64(firsts.size)
    window = next_chunk(team, plan.starts.size - 1, 1)
    while window >= 0:
        first, last = plan.starts[window], plan.starts[window + 1]
        buffer = buffers[team.rank, : last - first]
        pull_window(block.indptr, block.columns, block.weights, plan, window, given, buffer, zero)
        place, part = np.uint64(first) // parts, np.uint64(first) % parts
        for i in range(buffer.size):
            sums[firsts[part] + place] = buffer[i]
            part += ONE
            if part == parts:
                place, part = place + ONE, np.uint64(0)
        window = next_chunk(team, plan.starts.size - 1, 1)


@kernel
def _give(team: Any, owned: Owned, zero: Any) -> None:
    n, buffer = owned.scores.size, owned.buffers[team.rank]
    window = next_chunk(team, owned.lost.size, 1)
    while window >= 0:
        first, last = window * WINDOW, min((window + 1) * WINDOW, n)
        for i in range(first, last):
            owned.given[i] = owned.scores[i] * owned.share[i]
        owned.lost[window] = held(owned.scores[first:last], owned.share[first:last], buffer, zero)
        window = next_chunk(team, owned.lost.size, 1)


@kernel
def _score(
    team: Any, owned: Owned, sums: Array, damping: Any, mass: float, even: float, loses: bool
) -> None:
    """`sums` are what came to the own vertices; they are used up."""
    n, buffer = owned.scores.size, owned.buffers[team.rank]
    zero = damping - damping  # in the type of the scores
    window = next_chunk(team, owned.lost.size, 1)
    while window >= 0:
        first, last = window * WINDOW, min((window + 1) * WINDOW, n)
        part, scores, share = sums[first:last], owned.scores[first:last], owned.share[first:last]
        jump_window(part, owned.jumps, first, damping, mass, even)
        owned.changes[window] = score_window(part, scores, share, owned.given[first:last])
        if loses:
            owned.lost[window] = held(scores, share, buffer, zero)
        window = next_chunk(team, owned.lost.size, 1)


def block_of(
    indptr: Array, columns: Array, weights: Array | None, n_columns: int, threads: int | None
) -> Block | TiledBlock:
    """The block, prepared; `columns` are positions in the column group."""
    groups = _busy_first(columns, n_columns)
    order = np.concatenate(groups).astype(_kind(n_columns))
    if weights is None:
        if order.size:
            begins = [0, groups[0].size, *range(order.size - groups[2].size, order.size, TILE)]
            cuts = np.unique([*begins, order.size])
        else:
            cuts = _even_cuts(columns, n_columns)
        if 2 <= cuts.size <= MOST + 1:
            every = order if order.size else np.arange(n_columns)
            tiles = tiles_of(indptr, columns, every, cuts, n_columns, threads)
            return TiledBlock(indptr, tiles, order)
    if order.size:
        places = np.empty(n_columns, columns.dtype)
        places[order] = np.arange(order.size, dtype=columns.dtype)
        columns = places[columns]
    plan = plan_of(indptr, columns, weights, threads)
    return Block(indptr, as_unsigned(columns), weights, plan, order)


def _kind(n_columns: int) -> Any:
    return np.uint32 if n_columns <= np.iinfo(np.uint32).max else np.uint64


def _busy_first(columns: Array, n_columns: int) -> tuple[Array, Array, Array]:
    """The busiest columns, the busy and all others with entries; empty where that is no gain.

    Where few columns have most entries, what these give then lies together, in the cache.  Each
    group is in the order of before, so neighbours stay neighbours.
    """
    nothing = np.empty(0, np.int64)
    if n_columns <= SMALL * BUSY:
        return nothing, nothing, nothing
    counts = np.bincount(columns, minlength=n_columns)
    places = [n_columns - BUSY, n_columns - BUSIEST]
    limits = np.partition(counts, places)[places]
    busy, busiest = counts > limits[0], counts > limits[1]
    if 2 * int(counts[busy].sum()) < columns.size:
        return nothing, nothing, nothing
    others = ~busy & (counts > 0)
    return np.flatnonzero(busiest), np.flatnonzero(busy & ~busiest), np.flatnonzero(others)


def _even_cuts(columns: Array, n_columns: int) -> Array:
    """Ends of tiles for columns in the order in which they are; empty where that is no gain.

    Where entries that follow each other have columns all over the block, none of what these give
    is in the cache when it is asked for.  Where they lie near each other, it is: so looks of LOOK
    entries each, here and there, count how many are in the fullest tile.
    """
    if n_columns <= SMALL * BUSY or columns.size < LOOK:
        return np.empty(0, np.int64)
    last = columns.size - LOOK
    looks = [columns[at : at + LOOK] // TILE for at in range(0, last + 1, max(1, last // LOOKS))]
    fullest = sum(int(np.bincount(look).max()) for look in looks)
    if SPREAD * fullest > LOOK * len(looks):
        return np.empty(0, np.int64)
    return np.append(np.arange(0, n_columns, TILE), n_columns)


def pull(block: Block | TiledBlock, given: Array, threads: int | None) -> Array:
    """What the columns give to each row of the block."""
    given = in_order(block, given)
    sums = np.empty(block.indptr.size - 1, given.dtype)
    pull_by_owner(block, given, [sums.size], sums, threads)
    return sums


def in_order(block: Block | TiledBlock, given: Array) -> Array:
    """What is given by position, in the order of the block."""
    return given[block.order] if block.order.size else given


def pull_by_owner(
    block: Block | TiledBlock, given: Array, counts: list[int], sums: Array, threads: int | None
) -> None:
    """The same into `sums`, in the order of owners: row v is that of owner v mod len(counts).

    They own as many rows as `counts` says.  What is given is in the order of the block.
    """
    if sums.size == 0:
        return
    firsts = (np.cumsum(counts) - counts).astype(np.uint64)
    if isinstance(block, TiledBlock):
        pull_tiles(block.tiles, block.indptr, given, sums, firsts, threads)
        return
    kind = given.dtype
    weights = np.empty(0, kind) if block.weights is None else block.weights
    block = block._replace(weights=weights.astype(kind, copy=False))
    team = crew(threads, work=int(block.columns.size) + sums.size)
    buffers = np.empty((team.size, WINDOW), kind)
    team.run(_pull, block, given, sums, firsts, buffers, kind.type(0))


class Scorer:
    """The own scores, iteration by iteration, and what the own vertices give."""

    def __init__(
        self, start: Array, share: Array, jump: Any, dangling: Any, threads: int | None
    ) -> None:
        windows, none = -(-start.size // WINDOW), np.empty(0, start.dtype)
        jumps = Jumps(*(none if x is None else x for x in (jump, dangling)))
        self._team = crew(threads, work=4 * start.size)
        self._owned = Owned(
            start.copy(), share, np.empty_like(start), jumps, np.zeros(windows), np.zeros(windows),
            np.empty((self._team.size, WINDOW), start.dtype),
        )  # fmt: skip
        self._team.run(_give, self._owned, start.dtype.type(0))
        self.scores, self.given = self._owned.scores, self._owned.given

    @property
    def lost(self) -> float:
        """What the own vertices without arcs hold."""
        return float(self._owned.lost.sum())

    def step(self, pulled: Array, damping: float, mass: float, even: float, loses: bool) -> float:
        """Take the next scores; returns by how much they differ from the ones before."""
        factor = self.scores.dtype.type(damping)
        self._team.run(_score, self._owned, pulled, factor, mass, even, loses)
        return float(self._owned.changes.sum())
