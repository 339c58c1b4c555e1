"""Sums over the rows of a block with many columns, tile after tile of columns.

What the columns of a tile give fits into a cache of the core, and an entry there takes a third of
the time of one that comes from a cache which all cores share.  So all rows read the columns of one
tile before any row reads the next.  The busiest columns are a tile of their own that fits into the
nearest cache: in skewed graphs they have half of all entries.  Entries are 2 bytes, the place in
the tile.

Rows without entries are left out: the sums of the others lie together, and every tile adds to
them.  These rows are cut into windows, and a *unit* is a tile's part of a window.  A unit has runs
of rows that are equally long in the tile, so that the processor foresees the ends of rows, and
neither lengths nor places of single rows are read.  Rows without entries in the tile are not in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, kernel, next_chunk
from matchwood.engines.cpu.hints import select
from matchwood.ranking.random_surfer.cpu_pull import (
    FOUR,
    LONG,
    ONE,
    ZERO,
    pulled,
    pulled_in_pieces,
    pulled_short,
)

Array = np.ndarray[Any, Any]

TILE = 1 << 16  # columns; what they give takes 512 KiB, and a place among them 2 bytes
BITS = np.uint32(16)  # of a place in a tile
PLACE = np.uint32(TILE - 1)
WINDOW = 8192  # rows with entries; their sums, 64 KiB, stay in the second-level cache
TASK = 1 << 18  # entries of a window, about: some 300 us of work
LENGTHS = 1024  # rows of this length and longer are runs of their own


class Tiles(NamedTuple):
    """Units are numbered tile by tile; window w of tile t is unit ``t * windows + w``."""

    cuts: Any  # tile t has the columns cuts[t] .. cuts[t + 1] - 1
    rows: Any  # window w has the rows rows[w] .. rows[w + 1] - 1 of the block
    full: Any  # of which those with entries have the sums full[w] .. full[w + 1] - 1
    entries: Any  # uint64: where the columns of each unit begin
    visits: Any  # uint64: where its rows begin in `order`
    runs: Any  # uint64: where its runs begin
    columns: Any  # uint16: places in the tile
    order: Any  # uint16: rows of the units, counted within the window from 0, empty ones left out
    lengths: Any  # uint32: entries of each row of a run
    counts: Any  # uint16: rows of a run


class Scratch(NamedTuple):
    """What a member needs to sort the rows of a window; its own part is [rank]."""

    lengths: Any  # (members, tiles, WINDOW) entries of a row in a tile; then where they go
    by_length: Any  # (members, LENGTHS) rows of each length


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
        by_length[min(lengths[i], LENGTHS - 1)] += 1
        entries += lengths[i]
    return entries


@kernel
def _measure(
    team: Any, indptr: Array, codes: Array, tiles: Tiles, scratch: Scratch, sizes: Array
) -> None:  # fmt: skip
    """sizes[:, unit]: its entries, its rows, its runs."""
    windows = tiles.rows.size - 1
    lengths, by_length = scratch.lengths[team.rank], scratch.by_length[team.rank]
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = tiles.rows[window], tiles.rows[window + 1]
        full = _count_entries(indptr, codes, first, last, lengths, tiles.cuts.size - 1)
        for tile in range(tiles.cuts.size - 1):
            unit = tile * windows + window
            sizes[0, unit] = _count_lengths(lengths[tile, :full], by_length)
            sizes[1, unit] = full - by_length[0]
            runs = by_length[LENGTHS - 1]
            for length in range(1, LENGTHS - 1):
                runs += by_length[length] > 0
            sizes[2, unit] = runs
        window = next_chunk(team, windows, 1)


@kernel
def _write(team: Any, indptr: Array, codes: Array, tiles: Tiles, scratch: Scratch) -> None:
    windows = tiles.rows.size - 1
    lengths, by_length = scratch.lengths[team.rank], scratch.by_length[team.rank]
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
    for length in range(1, LENGTHS):
        count = by_length[length]
        by_length[length] = at
        at += count
        if count > 0 and length < LENGTHS - 1:
            tiles.lengths[run], tiles.counts[run] = length, count
            run += ONE
    for i in range(lengths.size):
        length = min(lengths[i], LENGTHS - 1)
        if length > 0:
            tiles.order[by_length[length]] = i
            by_length[length] += 1
            if length == LENGTHS - 1:
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
def _pull(
    team: Any,
    tiles: Tiles,
    indptr: Array,
    given: Array,
    full_sums: Array,
    sums: Array,
    firsts: Array,
    zero: Any,
) -> None:
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
    """The sums of all rows of a window, to where they belong."""
    parts = np.uint64(firsts.size)
    place, part, at = np.uint64(first) // parts, np.uint64(first) % parts, 0
    for v in range(indptr.size - 1):
        full = indptr[v] < indptr[v + 1]  # nobody foresees which are: no branch
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
    rows = _windows(indptr)
    full_before = np.concatenate([[0], np.cumsum(np.diff(indptr) > 0)])
    units = (cuts.size - 1) * (rows.size - 1)
    team = crew(threads, work=4 * entry_codes.size)
    scratch = Scratch(
        np.empty((team.size, cuts.size - 1, WINDOW), np.int64),
        np.empty((team.size, LENGTHS), np.int64),
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


def _windows(indptr: Array) -> Array:
    """Where windows begin: about TASK entries in each, and one to WINDOW rows that have some."""
    part = indptr[1:].astype(np.int64) // TASK
    window = np.maximum(np.cumsum(np.diff(indptr) > 0) - 1, 0) // WINDOW
    new = np.flatnonzero((np.diff(part) != 0) | (np.diff(window) != 0)) + 1
    return np.concatenate([[0], new, [indptr.size - 1]]).astype(np.int64)


def pull_tiles(
    tiles: Tiles, indptr: Array, given: Array, sums: Array, firsts: Array, threads: int | None
) -> None:
    """What the columns give to each row; `given` is in the order of the tiles."""
    team = crew(threads, work=int(tiles.columns.size) + sums.size)
    full_sums = np.empty(int(tiles.full[-1]), np.float64)
    team.run(_pull, tiles, indptr, given, full_sums, sums, firsts, given.dtype.type(0))
