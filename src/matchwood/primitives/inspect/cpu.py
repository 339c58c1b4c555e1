"""`inspect` on a team of threads: each member reads its rows and fills one line of a table.

The hashes and why they can be trusted: __init__.py.

The same kernels read a block of a matrix that is distributed over ranks.  There vertices have local
numbers and `names`, and the sums of all blocks are those of the matrix.  Without names, vertices
have their own numbers; Numba compiles a kernel for each of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    share,
    share_rows,
    stopping,
)
from matchwood.engines.cpu.cpus import suits_one_thread
from matchwood.primitives.inspect import FAULTS, SPREAD, Structure, Symmetry, Values, keys

Array = np.ndarray[Any, Any]

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_S29, _S31, _S32 = np.uint64(29), np.uint64(31), np.uint64(32)

# columns of the table
_FAULT, _AT, _DESCENTS, _LOOPS, _LONGEST, _SUM1, _SUM2 = range(7)
WIDTH = 8  # one cache line for each member
_ENTRIES_PER_STEP = 8  # `_validate` reads these in the 2 ns of a step of `crew`: vectorised loops
# Rows and entries that are hashed in less than half a millisecond, in the calling thread: a
# hand-over would take a tenth of that, and Ctrl-C can wait.
_AT_ONCE = 100_000
_BLOCK = np.uint64(1 << 16)  # entries or words between two checks of the stop word


@device
def _mixed(h: Any, again: Any) -> Any:
    h = (h ^ (h >> _S32)) * again
    return h ^ (h >> _S29)


@device
def _step(h: Any, multiplier: Any) -> Any:
    """The next number of a chain; not linear in the one before."""
    h = h * multiplier
    return h ^ (h >> _S31)


@device
def vertex_numbers(key: Any, v: Any) -> Any:
    """The four numbers of a vertex: x1, y1, x2, y2."""
    a = _mixed(np.uint64(v) * key.spread + key.start, key.again)
    b = _step(a, key.step1)
    c = _step(b, key.step2)
    return a, b, c, _step(c, key.step3)


@device
def value_number(key: Any, bits: Any) -> Any:
    """The number of a value other than zero."""
    return _mixed(np.uint64(bits) * key.value_spread + key.value_start, key.value_again)


@device
def _name(names: Any, v: Any) -> Any:
    """The number of a vertex in the hashes; `names` is None or an array."""
    if names is None:  # decided when it is compiled
        return v
    return names[v]


@device
def _sound_indptr(team: Any, indptr: Array, entries: int, table: Array) -> bool:
    """Look for faults in indptr, all members together; False when there is one."""
    rows = indptr.size - 1
    line = table[team.me]
    lo, hi = share(team, rows)
    if team.me == 0 and indptr[0] != 0:
        line[_FAULT] = 1
    else:
        falls, part = 0, indptr[lo : hi + 1]
        for i in range(np.uint64(hi - lo)):  # without an end in the middle: vectors of rows
            falls += part[i] > part[i + _ONE]
        for i in range(lo, hi if falls else lo):
            if indptr[i] > indptr[i + 1]:
                line[_FAULT] = 2
                line[_AT] = i
                break
    if team.me == team.size - 1 and line[_FAULT] == 0 and indptr[rows] != entries:
        line[_FAULT] = 3
        line[_AT] = rows
    if barrier(team):
        return False
    sound = True
    for member in range(team.size):
        sound = sound and table[member, _FAULT] == 0
    return sound


@kernel
def _validate(team: Any, indptr: Array, indices: Array, n: int, table: Array) -> None:
    """Check range and order; `indices` are unsigned, so that a negative one is a huge one.

    Entries are read without regard to rows, which is several times faster.  What that counts
    wrongly, at the first entries of rows, is subtracted afterwards.
    """
    if not _sound_indptr(team, indptr, indices.size, table):
        return
    line = table[team.me]
    lo, hi = share_rows(team, indptr)
    first, last = np.uint64(indptr[lo]), np.uint64(indptr[hi])
    largest = indices.dtype.type(0)
    descents = 0
    for block in range(first, last, _BLOCK):
        if stopping(team):
            return
        for k in range(block, min(block + _BLOCK, last)):
            largest = max(largest, indices[k])
        for k in range(max(block, np.uint64(1)), min(block + _BLOCK, last)):
            descents += indices[k] <= indices[k - np.uint64(1)]
    if last > first and np.uint64(largest) >= np.uint64(n):
        for k in range(first, last):
            if np.uint64(indices[k]) >= np.uint64(n):
                line[_FAULT] = 4
                line[_AT] = k
                return
    part, longest = indptr[lo : hi + 1], indptr.dtype.type(0)
    for i in range(np.uint64(hi - lo)):  # apart from the next loop, which is no work for vectors
        longest = max(longest, indptr.dtype.type(part[i + _ONE] - part[i]))
    for i in range(np.uint64(hi - lo if descents else 0)):
        start = np.uint64(part[i])
        if _ZERO < start < np.uint64(part[i + _ONE]) and indices[start] <= indices[start - _ONE]:
            descents -= 1
    line[_DESCENTS] = descents
    line[_LONGEST] = longest


@kernel
def _symmetry(team: Any, indptr: Array, indices: Array, names: Any, key: Any, table: Array) -> None:
    """Add up x'Ay - y'Ax, and count loops."""
    line = table[team.me]
    lo, hi = share_rows(team, indptr)
    loops = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        x1 = y1 = x2 = y2 = _ZERO
        # with unsigned counters Numba does not test for negative ones: 1.6 times faster
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            loops += j == i
            a, b, c, d = vertex_numbers(key, _name(names, j))
            x1 += a
            y1 += b
            x2 += c
            y2 += d
        a, b, c, d = vertex_numbers(key, _name(names, i))
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    line[_LOOPS] = loops
    line[_SUM1] = np.int64(sum1)
    line[_SUM2] = np.int64(sum2)


# Symmetry of a pattern with ascending rows, exactly, by one thread: for matrices in the caches.
#
# Rows are visited in ascending order.  An entry (i, j) above the diagonal must be met by (j, i):
# this is the next entry of row j not met so far, `place[j]`.  So when row j is visited, all its
# entries below the diagonal have been met.  Half of the entries take two reads; nothing is hashed.
# Patterns of 24,000 to 960,000 entries took 0.2 to 0.75 of the time of hashes by one thread.

_PAIRED_PER_STEP = 8  # entries counted as one step of `crew`: so a pass of up to 0.2 ms runs in
# the calling thread


@device
def _loops(indptr: Array, indices: Array) -> int:
    loops = 0
    for i in range(np.uint64(indptr.size - 1)):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            loops += np.uint64(indices[k]) == i
    return loops


@device
def all_met(team: Any, indptr: Array, indices: Array, place: Array) -> tuple[bool, int]:
    """Whether every entry has its mirror, and how many are on the diagonal, if so.

    A place may run into the next row, or behind the last one; that is seen when its row is visited.
    """
    n = np.uint64(indptr.size - 1)
    last = np.uint64(max(1, indices.size)) - _ONE
    for i in range(n):
        place[i] = indptr[i]
    loops = 0
    wrong = indices.dtype.type(0)
    for i in range(n):
        if interrupted(team, i):
            return True, 0
        k, end = np.uint64(place[i]), np.uint64(indptr[i + _ONE])
        own = indices.dtype.type(i)
        if k > end or wrong != 0:
            return False, 0
        if k < end and indices[k] <= own:
            if indices[k] < own:
                return False, 0
            loops += 1
            k += _ONE
        for x in range(k, end):
            j = indices[x]
            p = np.uint64(place[j])
            wrong |= indices[min(p, last)] ^ own
            place[j] = p + _ONE
    return wrong == 0, loops


@kernel
def _pairs(team: Any, indptr: Array, indices: Array, place: Array, found: Array) -> None:
    met, loops = all_met(team, indptr, indices, place)
    found[0], found[1] = met, loops if met else _loops(indptr, indices)


def symmetry_by_pairs(indptr: Array, indices: Array) -> Symmetry:
    kind = np.uint32 if indices.itemsize == 4 else np.uint64
    found = np.zeros(2, np.int64)
    crew(1, work=(indptr.size + indices.size) // _PAIRED_PER_STEP).run(
        _pairs, indptr.view(kind), indices.view(kind), np.empty(indptr.size, kind), found
    )
    return Symmetry(int(found[1]), bool(found[0]))


@device
def loops_if_symmetric(team: Any, indptr: Array, indices: Array, place: Array, table: Array) -> int:
    """The loops of a pattern whose arrays are sound, with ascending rows, and symmetric.

    -1 if it is not symmetric; -2 if an array is not sound, or a row does not ascend.

    For a kernel of one thread, with arrays that have not been checked.  `indices` are unsigned.
    `place` has room for a number of that type for each vertex, `table` is as `structure` makes it,
    for one member.
    """
    n = indptr.size - 1
    _validate(team, indptr, indices, n, table)
    if table[0, _FAULT] != 0 or table[0, _DESCENTS] != 0:
        return -2
    met, loops = all_met(team, indptr.view(indices.dtype), indices, place)
    return loops if met else -1


def structure(indptr: Array, indices: Array, n: int, *, threads: int | None = None) -> Structure:
    team = crew(threads, work=(indices.size + indptr.size) // _ENTRIES_PER_STEP)
    table = np.zeros((team.size, WIDTH), np.int64)
    unsigned = np.uint32 if indices.itemsize == 4 else np.uint64
    team.run(_validate, indptr, indices.view(unsigned), n, table)
    # a few numbers: NumPy takes 2 us for every step with them
    faults, places, descents, _, longest, *_ = zip(*table.tolist(), strict=True)
    if any(faults):
        at, fault = min(pair for pair in zip(places, faults, strict=True) if pair[1])
        return Structure(FAULTS[fault], at, False, 0)
    return Structure("", -1, not any(descents), max(longest))


def _hashing_team(indptr: Array, indices: Array, threads: int | None) -> Crew:
    work = indices.size + indptr.size
    if threads is None and work < _AT_ONCE:
        return crew(1, work=0)
    return crew(threads, work=work)


def symmetry(
    indptr: Array, indices: Array, *, key: keys.Key | None = None, threads: int | None = None
) -> Symmetry:
    loops, *sums = symmetry_sums(indptr, indices, None, key or keys.key(), threads)
    return Symmetry(loops, not any(sums))


def ascending_symmetry(indptr: Array, indices: Array, *, threads: int | None = None) -> Symmetry:
    """`symmetry` of ascending rows; without hashes if they fit the caches and `threads` is None."""
    if threads is None and suits_one_thread(indptr.size + indices.size):
        return symmetry_by_pairs(indptr, indices)
    return symmetry(indptr, indices, threads=threads)


def symmetry_sums(
    indptr: Array, indices: Array, names: Array | None, key: keys.Key, threads: int | None
) -> tuple[int, int, int]:
    """(loops, two sums): symmetric where the sums, of all blocks, are zero modulo 2^64."""
    team = _hashing_team(indptr, indices, threads)
    table = np.zeros((team.size, WIDTH), np.int64)
    team.run(_symmetry, indptr, indices, names, key, table)
    _, _, _, loops, _, sum1, sum2, _ = np.add.reduce(table).tolist()
    return loops, sum1, sum2


_BAD, _ZEROS, _VSUM1, _VSUM2, _VLOOPS, _NEGATIVE_LOOPS = range(6)


@kernel
def _values(
    team: Any, indptr: Array, indices: Array, data: Array, bits: Array, names: Any, key: Any,
    table: Array, ranges: Array,
) -> None:  # fmt: skip
    line = table[team.me]
    line[_BAD] = -1
    lo, hi = share_rows(team, indptr)
    least, most = np.inf, -np.inf
    zeros = loops = negative_loops = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        x1 = y1 = x2 = y2 = _ZERO
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            w = np.float64(data[k])
            if not np.isfinite(w):
                line[_BAD] = k
                return
            if j != i:
                least = min(least, w)
                most = max(most, w)
                zeros += w == 0.0
            else:
                loops += 1
                negative_loops += w < 0.0
            h = value_number(key, bits[k]) if w != 0.0 else key.value_start  # -0.0 is 0.0
            a, b, c, d = vertex_numbers(key, _name(names, j))
            x1 += a * h
            y1 += b * h
            x2 += c * h
            y2 += d * h
        a, b, c, d = vertex_numbers(key, _name(names, i))
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    ranges[team.me, 0] = least
    ranges[team.me, 1] = most
    line[_ZEROS] = zeros
    line[_VLOOPS] = loops
    line[_NEGATIVE_LOOPS] = negative_loops
    line[_VSUM1] = np.int64(sum1)
    line[_VSUM2] = np.int64(sum2)


def values(
    indptr: Array, indices: Array, data: Array, *, key: keys.Key | None = None,
    threads: int | None = None,
) -> Values:  # fmt: skip
    return values_and_loops(indptr, indices, data, key=key, threads=threads)[0]


def values_and_loops(
    indptr: Array, indices: Array, data: Array, *, key: keys.Key | None = None,
    threads: int | None = None,
) -> tuple[Values, int | None]:  # fmt: skip
    """`values`, and the number of loops; None for these where an entry is not finite."""
    view = (indptr, indices, data)
    bad, least, most, sums = value_sums(view, None, key or keys.key(), threads)
    if bad >= 0:
        return Values(False, bad, 0.0, 0.0, 0, False, False), None
    if least > most:
        least = most = 0.0
    zeros, one, two, loops, negative = sums
    return Values(True, -1, least, most, zeros, one == two == 0, negative > 0), loops


def value_sums(
    view: tuple[Array, Array, Array], names: Array | None, key: keys.Key, threads: int | None
) -> tuple[int, float, float, list[int]]:
    """(an entry that is not finite or -1, least, most, (zeros, two sums, loops, negative loops)).

    Least, most and zeros are those off the diagonal.
    """
    indptr, indices, data = view
    team = _hashing_team(indptr, indices, threads)
    table = np.zeros((team.size, WIDTH), np.int64)
    ranges = np.zeros((team.size, WIDTH))
    bits = data.view(np.uint32 if data.itemsize == 4 else np.uint64)
    team.run(_values, indptr, indices, data, bits, names, key, table, ranges)
    bad = min((at for at in table[:, _BAD].tolist() if at >= 0), default=-1)
    least, most, *_ = zip(*ranges.tolist(), strict=True)
    return bad, min(least), max(most), np.add.reduce(table).tolist()[_ZEROS : _NEGATIVE_LOOPS + 1]


# The words of an array: see `checksum` of __init__.py.

_SPREAD = np.uint64(SPREAD)
_WORDS_PER_STEP = 1  # words read in the 2 ns of a step of `crew`
_LINE = 8  # words of a cache line, one for each member


@kernel
def _sum_words(team: Any, words: Array, sums: Array) -> None:
    """Each member adds up its share; additions modulo 2^64 may be in any order."""
    lo, hi = share(team, words.size)
    first, last = np.uint64(lo), np.uint64(hi)
    one = two = _ZERO
    for block in range(first, last, _BLOCK):
        if stopping(team):
            return
        for k in range(block, min(block + _BLOCK, last)):
            u = np.uint64(words[k]) * _SPREAD
            one += u ^ (u >> _S32)
            two += one  # so the first word counts most often; products are slow on some CPUs
    sums[team.me, 0] = one
    sums[team.me, 1] = two + one * np.uint64(words.size - hi)


def word_sums(words: Array, *, threads: int | None = None) -> tuple[int, int]:
    team = crew(threads, work=words.size // _WORDS_PER_STEP)
    sums = np.zeros((team.size, _LINE), np.uint64)
    team.run(_sum_words, words, sums)
    one, two = sums[:, :2].sum(axis=0).tolist()
    return one, two
