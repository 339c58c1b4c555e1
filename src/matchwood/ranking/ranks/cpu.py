"""PageRank on the block of a rank: the sums of its rows, and the scores of its own vertices.

Between the two the ranks of a row group add up what each found (__init__.py).  gpu.py has the same
functions.  A block without weights whose entries are in columns all over it is read in tiles; any
other in windows, as on one machine (ranking/cpu.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, kernel, next_chunk
from matchwood.engines.cpu.hints import select
from matchwood.ranking.cpu import (
    FOUR,
    LONG,
    ONE,
    WINDOW,
    ZERO,
    Jumps,
    Plan,
    as_unsigned,
    held,
    jump_window,
    plan_of,
    pull_window,
    pulled,
    pulled_in_pieces,
    pulled_short,
    score_window,
)  # fmt: skip

Array = np.ndarray[Any, Any]

TILE = 1 << 16  # columns; what they give takes 512 KiB, and a place among them 2 bytes
BITS = np.uint32(16)  # bits of a place in a tile
PLACE = np.uint32(TILE - 1)
TILE_ROWS = 8192  # rows with entries; their sums, 64 KiB, stay in the second-level cache
TILE_TASK = 1 << 18  # entries of a window, about: some 300 us of work
RUN_LENGTHS = 1024  # rows of this length and longer are runs of their own
BUSIEST = 1 << 12  # columns; what they give, 32 KiB, stays in the nearest cache of a core
BUSY = TILE  # columns; what they give, 512 KiB, stays in its second-level cache
CACHED_BUSY = 2  # times BUSY columns: what they give fits into the caches without tiles
MOST_TILES = 64  # larger blocks were not measured
LOOK_ENTRIES, LOOKS = 4096, 64  # entries of a sample, and samples of a block, about
SPREAD_TILES = 6  # tiles over which samples must lie: what these give exceeds most caches

# Sums over the rows of a block with many columns, tile after tile of columns.
#
# What the columns of a tile give fits into a cache of the core, and an entry there takes a third of
# the time of one that is read from a cache which all cores share.  So all rows read the columns of
# one tile before any row reads the next.  The busiest columns are a tile of their own that fits
# into the nearest cache: in skewed graphs they have half of all entries.  Entries are 2 bytes, the
# place in the tile.
#
# Rows without entries are left out: the sums of the others lie together, and every tile adds to
# them.  These rows are cut into windows, and a *unit* is a tile's part of a window.  A unit has
# runs of rows that are equally long in the tile, so that the processor predicts the ends of rows,
# and neither lengths nor places of single rows are read.  Rows without entries in the tile are not
# in it.


class Tiles(NamedTuple):
    """Units are numbered tile by tile; window w of tile t is unit ``t * windows + w``."""

    cuts: Any  # tile t has the columns cuts[t] .. cuts[t + 1] - 1
    rows: Any  # window w has the rows rows[w] .. rows[w + 1] - 1 of the block
    full: Any  # its rows with entries have the sums full[w] .. full[w + 1] - 1
    entries: Any  # uint64: where the columns of each unit begin
    visits: Any  # uint64: where its rows begin in `order`
    runs: Any  # uint64: where its runs begin
    columns: Any  # uint16: places in the tile
    order: Any  # uint16: rows of the units, counted within the window from 0, empty ones left out
    lengths: Any  # uint32: entries of each row of a run
    counts: Any  # uint16: rows of a run


class Scratch(NamedTuple):
    """What a member needs to sort the rows of a window; its own part is [member]."""

    lengths: Any  # (members, tiles, TILE_ROWS) entries of a row in a tile; then where they go
    by_length: Any  # (members, RUN_LENGTHS) rows of each length


@device
def _count_entries(
    indptr: Array, codes: Array, first: int, last: int, lengths: Array, tiles: int
) -> int:  # fmt: skip
    """lengths[tile, i]: entries of the i-th row with entries of first .. last - 1; their number."""
    full = 0
    for v in range(first, last):
        begin, end = indptr[v], indptr[v + 1]
        if begin < end:
            for tile in range(tiles):
                lengths[tile, full] = 0
            for k in range(begin, end):
                lengths[codes[k] >> BITS, full] += 1
            full += 1
    return full


@device
def _count_lengths(lengths: Array, by_length: Array) -> Any:
    """by_length[k]: rows of that length; the longest count together."""
    by_length[:] = 0
    entries = 0
    for i in range(lengths.size):
        by_length[min(lengths[i], RUN_LENGTHS - 1)] += 1
        entries += lengths[i]
    return entries


@kernel
def _measure(
    team: Any, indptr: Array, codes: Array, tiles: Tiles, scratch: Scratch, sizes: Array
) -> None:  # fmt: skip
    """sizes[:, unit] = the numbers of its entries, rows and runs."""
    windows = tiles.rows.size - 1
    lengths, by_length = scratch.lengths[team.me], scratch.by_length[team.me]
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = tiles.rows[window], tiles.rows[window + 1]
        full = _count_entries(indptr, codes, first, last, lengths, tiles.cuts.size - 1)
        for tile in range(tiles.cuts.size - 1):
            unit = tile * windows + window
            sizes[0, unit] = _count_lengths(lengths[tile, :full], by_length)
            sizes[1, unit] = full - by_length[0]
            runs = by_length[RUN_LENGTHS - 1]
            for length in range(1, RUN_LENGTHS - 1):
                runs += by_length[length] > 0
            sizes[2, unit] = runs
        window = next_chunk(team, windows, 1)


@kernel
def _write(team: Any, indptr: Array, codes: Array, tiles: Tiles, scratch: Scratch) -> None:
    windows = tiles.rows.size - 1
    lengths, by_length = scratch.lengths[team.me], scratch.by_length[team.me]
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = tiles.rows[window], tiles.rows[window + 1]
        full = _count_entries(indptr, codes, first, last, lengths, tiles.cuts.size - 1)
        for tile in range(tiles.cuts.size - 1):
            _count_lengths(lengths[tile, :full], by_length)
            _sort_unit(tiles, tile * windows + window, lengths[tile, :full], by_length)
        i = -1
        for v in range(first, last):
            i += indptr[v] < indptr[v + 1]
            for k in range(indptr[v], indptr[v + 1]):
                tile = codes[k] >> BITS
                tiles.columns[lengths[tile, i]] = codes[k] & PLACE
                lengths[tile, i] += 1
        window = next_chunk(team, windows, 1)


@device
def _sort_unit(tiles: Tiles, unit: int, lengths: Array, by_length: Array) -> None:
    """Write the runs and the order of a unit; lengths[i] becomes where the row's entries begin.

    Counting keeps the order of rows of one length.
    """
    run, at = tiles.runs[unit], np.int64(tiles.visits[unit])
    for length in range(1, RUN_LENGTHS):
        count = by_length[length]
        by_length[length] = at
        at += count
        if count > 0 and length < RUN_LENGTHS - 1:
            tiles.lengths[run], tiles.counts[run] = length, count
            run += ONE
    for i in range(lengths.size):
        length = min(lengths[i], RUN_LENGTHS - 1)
        if length > 0:
            tiles.order[by_length[length]] = i
            by_length[length] += 1
            if length == RUN_LENGTHS - 1:
                tiles.lengths[run], tiles.counts[run] = lengths[i], 1
                run += ONE
    k = np.int64(tiles.entries[unit])
    for visit in range(tiles.visits[unit], tiles.visits[unit + 1]):
        i = tiles.order[visit]
        length = lengths[i]
        lengths[i] = k
        k += length


@device
def _add_unit(tiles: Tiles, unit: int, given: Array, sums: Array, zero: Any) -> None:
    """Add what the columns of a tile give to the rows of a window."""
    k, at = tiles.entries[unit], tiles.visits[unit]
    columns = tiles.columns
    for run in range(tiles.runs[unit], tiles.runs[unit + 1]):
        length, end = np.uint64(tiles.lengths[run]), at + np.uint64(tiles.counts[run])
        while at < end:
            row = tiles.order[at]
            if length <= FOUR:
                sums[row] += np.float64(pulled_short(given, columns, k, length, zero))
            elif length <= LONG:
                sums[row] += np.float64(pulled(given, columns, k, k + length, zero))
            else:
                sums[row] += pulled_in_pieces(given, columns, k, k + length, zero)
            k += length
            at += ONE


@kernel
def _pull_tiles(
    team: Any, tiles: Tiles, indptr: Array, given: Array, full_sums: Array, sums: Array,
    firsts: Array, zero: Any,
) -> None:  # fmt: skip
    """Row v is element v div parts of the part that begins at firsts[v mod parts] in `sums`."""
    windows, most = tiles.rows.size - 1, tiles.cuts.size - 2
    for tile in range(most + 1):
        part = given[tiles.cuts[tile] : tiles.cuts[tile + 1]]
        window = next_chunk(team, windows, 1)
        while window >= 0:
            mine = full_sums[tiles.full[window] : tiles.full[window + 1]]
            if tile == 0:
                mine[:] = 0.0
            _add_unit(tiles, tile * windows + window, part, mine, zero)
            if tile == most:
                first, last = tiles.rows[window], tiles.rows[window + 1]
                _hand_out(indptr[first : last + 1], first, mine, sums, firsts)
            window = next_chunk(team, windows, 1)
        if barrier(team):
            return


@device
def _hand_out(indptr: Array, first: int, full_sums: Array, sums: Array, firsts: Array) -> None:
    """Write the sums of all rows of a window to where they belong in `sums`."""
    parts = np.uint64(firsts.size)
    place, part, at = np.uint64(first) // parts, np.uint64(first) % parts, 0
    for v in range(indptr.size - 1):
        full = indptr[v] < indptr[v + 1]  # no branch: it could not be predicted
        value = full_sums[np.uint64(at * full)]
        sums[firsts[part] + place] = select(full, value, 0.0)
        at += full
        part += ONE
        if part == parts:
            place, part = place + ONE, ZERO


def tiles_of(
    indptr: Array, columns: Array, order: Array, cuts: Array, n_columns: int, threads: int | None
) -> Tiles:
    """The tiles of a block whose columns have the places of `order`; `cuts` are ends of tiles."""
    codes = np.zeros(n_columns, np.uint32)
    for tile in range(cuts.size - 1):
        part = order[cuts[tile] : cuts[tile + 1]]
        codes[part] = np.arange(part.size, dtype=np.uint32) + np.uint32(tile << 16)
    entry_codes = codes[columns]
    rows = _tile_windows(indptr)
    full_before = np.concatenate([[0], np.cumsum(np.diff(indptr) > 0)])
    units = (cuts.size - 1) * (rows.size - 1)
    team = crew(threads, work=4 * entry_codes.size)
    scratch = Scratch(
        np.empty((team.size, cuts.size - 1, TILE_ROWS), np.int64),
        np.empty((team.size, RUN_LENGTHS), np.int64),
    )
    nothing = np.empty(0, np.uint64)
    tiles = Tiles(cuts, rows, full_before[rows], *[nothing] * 3, *_room(0, 0, 0))
    sizes = np.zeros((3, units), np.int64)
    team.run(_measure, indptr, entry_codes, tiles, scratch, sizes)
    begins = np.zeros((3, units + 1), np.uint64)
    np.cumsum(sizes, axis=1, out=begins[:, 1:])
    tiles = Tiles(cuts, rows, tiles.full, *begins, *_room(*begins[:, -1].tolist()))
    team.run(_write, indptr, entry_codes, tiles, scratch)
    return tiles


def _room(entries: int, visits: int, runs: int) -> tuple[Array, ...]:
    return (
        np.empty(entries, np.uint16), np.empty(visits, np.uint16),
        np.empty(runs, np.uint32), np.empty(runs, np.uint16),
    )  # fmt: skip


def _tile_windows(indptr: Array) -> Array:
    """Where windows begin: about TILE_TASK entries, and one to TILE_ROWS rows that have some."""
    part = indptr[1:].astype(np.int64) // TILE_TASK
    window = np.maximum(np.cumsum(np.diff(indptr) > 0) - 1, 0) // TILE_ROWS
    new = np.flatnonzero((np.diff(part) != 0) | (np.diff(window) != 0)) + 1
    return np.concatenate([[0], new, [indptr.size - 1]]).astype(np.int64)


def pull_tiles(
    tiles: Tiles, indptr: Array, given: Array, sums: Array, firsts: Array, threads: int | None
) -> None:
    """What the columns give to each row; `given` is in the order of the tiles."""
    team = crew(threads, work=int(tiles.columns.size) + sums.size)
    full_sums = np.empty(int(tiles.full[-1]), np.float64)
    team.run(_pull_tiles, tiles, indptr, given, full_sums, sums, firsts, given.dtype.type(0))


# Blocks, and the own vertices


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
    changes: Any  # the change of each window
    lost: Any  # what vertices without arcs hold, by window
    buffers: Any  # (members, WINDOW)


@kernel
def _pull_windows(
    team: Any, block: Block, given: Array, sums: Array, firsts: Array, buffers: Array, zero: Any
) -> None:
    """Row v is element v div parts of the part that begins at firsts[v mod parts] in `sums`."""
    plan, parts = block.plan, np.uint64(firsts.size)
    window = next_chunk(team, plan.starts.size - 1, 1)
    while window >= 0:
        first, last = plan.starts[window], plan.starts[window + 1]
        buffer = buffers[team.me, : last - first]
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
    n, buffer = owned.scores.size, owned.buffers[team.me]
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
    """`sums` are what the own vertices receive; they are overwritten."""
    n, buffer = owned.scores.size, owned.buffers[team.me]
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
        if 2 <= cuts.size <= MOST_TILES + 1:
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

    Where few columns have most entries, what these give then lies together, in the cache.  The
    order within each group is kept, so neighbours stay neighbours.
    """
    nothing = np.empty(0, np.int64)
    if n_columns <= CACHED_BUSY * BUSY:
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
    """Ends of tiles for columns in their given order; empty where tiles gain nothing.

    Where successive entries have columns all over the block, what these give is not in the cache;
    where the columns lie near each other, it is, and tiles gain nothing.  So samples of
    LOOK_ENTRIES entries count how many are in the fullest tile.
    """
    if n_columns <= CACHED_BUSY * BUSY or columns.size < LOOK_ENTRIES:
        return np.empty(0, np.int64)
    last = columns.size - LOOK_ENTRIES
    looks = [
        columns[at : at + LOOK_ENTRIES] // TILE for at in range(0, last + 1, max(1, last // LOOKS))
    ]
    fullest = sum(int(np.bincount(look).max()) for look in looks)
    if SPREAD_TILES * fullest > LOOK_ENTRIES * len(looks):
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
    """`pull` into `sums`, in the order of owners: row v is that of owner v mod len(counts).

    Owner k has counts[k] rows.  `given` is in the order of the block.
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
    team.run(_pull_windows, block, given, sums, firsts, buffers, kind.type(0))


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
