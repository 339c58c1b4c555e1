"""Text to numbers on a team of threads.

Who uses what, by way of text.py: `records` edge_list.py and dimacs.py; `check_table`
matrix_market.py; `measure_rows` and `read_rows` adjacency.py.

The text is one array of bytes that ends in a newline.  Each member takes the lines that start in
its share of the bytes; `count_lines` has counted the lines before it, so it knows where its results
go.  Nothing is shared but the text, so there are no atomics.

A member that meets a malformed line writes the kind of problem and the byte to its own row of
`problem` and stops.  Shares lie in the order of the text, so the first row with a problem is the
first malformed line of the file, at any number of threads.

Adjacency lists, one line for each vertex, take two passes, since the place of a row in the result
depends on the lengths of those before: first `measure_rows`, then `read_rows`.

Decimal text becomes float64, rounded as `float()` rounds.  `number` reads one: w * 10**q with an
integer w < 2**64, or between that and the same with w + 1 where there are more than 19 digits.
Three ways, from quick to slow:

1.  w and 10**abs(q) both exact in a float64: one multiplication or division [1]_.
2.  the 128-bit product of w and 5**q from a table, which decides the rounding in all but a few of
    10**9 cases [2]_.
3.  left to the caller (`UNSURE`), who asks `float()`: those few, and subnormal results.

.. [1] W. D. Clinger. How to read floating point numbers accurately. PLDI 1990.
   doi:10.1145/93542.93557
.. [2] D. Lemire. Number parsing at a gigabyte per second. Softw. Pract. Exp. 51(8), 2021.
   doi:10.1002/spe.2984
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, kernel, share, stopping
from matchwood.engines.cpu.hints import ldexp

Array = np.ndarray[Any, Any]

# A number

DONE, UNSURE, NOT_A_NUMBER, TOO_LARGE = 0, 1, 2, 3

_Q_MIN, _Q_MAX = -300, 308  # powers of ten in the table; beyond, the result is 0, tiny or infinite
_DIGITS = 19  # decimal digits that always fit 64 bits


def _powers_of_five() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The leading 128 bits of 5**q, top bit set; rounded up for q < 0 as [2]_ asks."""
    high, low = [], []
    for q in range(_Q_MIN, _Q_MAX + 1):
        if q >= 0:
            power = 5**q
            shift = power.bit_length() - 128
            leading = power >> shift if shift > 0 else power << -shift
        else:
            divisor = 5**-q
            leading = (1 << (divisor.bit_length() + 127)) // divisor + 1
            leading >>= max(0, leading.bit_length() - 128)
        high.append(leading >> 64)
        low.append(leading & (2**64 - 1))
    return np.array(high, np.uint64), np.array(low, np.uint64)


_FIVE_HIGH, _FIVE_LOW = _powers_of_five()
_EXACT_TENS = 10.0 ** np.arange(23)  # 10**22 is the last power of ten that a float64 holds exactly

_0, _1, _2, _3, _9 = (np.uint64(x) for x in (0, 1, 2, 3, 9))
_32, _63, _64 = np.uint64(32), np.uint64(63), np.uint64(64)
_HALF = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW9 = np.uint64(0x1FF)  # bits of the product below those that a float64 keeps
_EXACT = np.uint64(1 << 53)
_TEN_64, _TEN, _ZERO = np.uint64(10), np.uint8(10), np.uint8(48)


@device
def _product(a: Any, b: Any) -> Any:
    """High and low half of the 128-bit product of two uint64."""
    a_high, a_low, b_high, b_low = a >> _32, a & _HALF, b >> _32, b & _HALF
    low = a_low * b_low
    cross = a_high * b_low + (low >> _32)
    other = a_low * b_high + (cross & _HALF)
    return a_high * b_high + (cross >> _32) + (other >> _32), a * b


@device
def _leading_zeros(w: Any) -> Any:
    count = _0
    step = _32
    while step > _0:
        if (w >> (_64 - step)) == _0:
            count += step
            w <<= step
        step >>= _1
    return count


@device
def _scaled(w: Any, q: int) -> Any:
    """(w * 10**q as float64, whether that is certainly the nearest one); w > 0."""
    if w <= _EXACT and -22 <= q <= 22:
        if q < 0:
            return np.float64(w) / _EXACT_TENS[-q], True
        return np.float64(w) * _EXACT_TENS[q], True
    if q < _Q_MIN or q > _Q_MAX:
        return 0.0, False
    zeros = _leading_zeros(w)
    w <<= zeros
    high, low = _product(w, _FIVE_HIGH[q - _Q_MIN])
    if (high & _LOW9) == _LOW9:  # the low half of the table may still carry into the kept bits
        carry, _ = _product(w, _FIVE_LOW[q - _Q_MIN])
        low += carry
        if low < carry:
            high += _1
    if low == _ONES and (q < -27 or q > 55):
        return 0.0, False
    top = high >> _63
    shift = top + _9
    mantissa = high >> shift
    # floor(q log2 10), from 217706 / 65536 = log2 10 to enough bits for these q
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - np.int64(zeros)
    if exponent < -1021 or exponent > 1022:
        return 0.0, False
    if low <= _1 and -4 <= q <= 23 and (mantissa & _3) == _1 and (mantissa << shift) == high:
        mantissa &= ~_1  # exactly half way: to even
    mantissa += mantissa & _1
    mantissa >>= _1
    # mantissa may now be 2**53, which is the next power of two: still exact
    return ldexp(np.float64(mantissa), exponent - 52), True


@device
def _digits(text: Array, p: int, w: Any) -> Any:
    """w followed by the digits at text[p], and where they end."""
    digit = np.uint8(text[p] - _ZERO)
    while digit < _TEN:
        w = w * _TEN_64 + np.uint64(digit)
        p += 1
        digit = np.uint8(text[p] - _ZERO)
    return w, p


@device
def _leading(text: Array, p: int) -> Any:
    """The first 19 digits from text[p], over the decimal point."""
    w, taken = _0, 0
    while taken < _DIGITS:
        if text[p] != 46:
            w = w * _TEN_64 + np.uint64(text[p] - 48)
            taken += 1
        p += 1
    return w


@device
def number(text: Array, p: int) -> Any:
    """Read the number at text[p]: (value, where it ends, status).

    [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent.  What follows
    the number is for the caller to judge.  `text` must end in a byte that is part of no number.
    """
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    w = _0
    q = 0
    start = p
    w, p = _digits(text, p, w)
    seen = p - start
    if text[p] == 46:
        p += 1
        point = p
        w, p = _digits(text, p, w)
        q = point - p
        seen -= q
    if seen == 0:
        return 0.0, p, NOT_A_NUMBER
    digits = seen
    if digits > _DIGITS:  # leading zeros do not count
        while text[start] == 48 or text[start] == 46:
            digits -= text[start] == 48
            start += 1
    if text[p] == 101 or text[p] == 69:
        p += 1
        down = text[p] == 45
        if down or text[p] == 43:
            p += 1
        power, seen = 0, 0
        while 48 <= text[p] <= 57:
            power = min(power * 10 + int(text[p] - 48), 99999)
            seen += 1
            p += 1
        if seen == 0:
            return 0.0, p, NOT_A_NUMBER
        q += -power if down else power
    dropped = max(0, digits - _DIGITS)
    if dropped:
        w = _leading(text, start)
        q += dropped
    if w == _0:
        return -0.0 if negative else 0.0, p, DONE
    if digits - dropped + q > 310:
        return 0.0, p, TOO_LARGE
    value, sure = _scaled(w, q)
    if dropped and sure:  # the number lies between w and w + 1: where both round alike, so does it
        above, sure = _scaled(w + _1, q)
        sure = sure and above == value
    if not sure:
        return 0.0, p, UNSURE
    return -value if negative else value, p, DONE


# Lines and tables

# Kinds of problem
ID_EXPECTED, NUMBER_EXPECTED, OUT_OF_RANGE, TOO_FEW, TOO_MANY, WRONG_LINE, OVERFLOW = range(1, 8)

# Arguments of `records`, one int64 each
RECORD_SPEC = 10
START, DELIMITER, FIELDS, KEY, U, V, W, BASE, U_LIMIT, V_LIMIT = range(RECORD_SPEC)
# What a member reports
COUNT, U_MAX, V_MAX, ASK = range(4)
NO_COMMENT = 256  # a byte that no text has
BLANK_DELIMITER = 32  # the byte of a space: any run of blanks
ASK_TAG = -8  # the top 16 bits (0xFFF8) of a value that `number` left to `float()`
BYTES_PER_STEP = 8  # bytes that cost about as much as a step of `crew`: an edge has some 15
WORD = 8  # bytes
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOW7, _TOP = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_EACH = np.uint64(0x0101010101010101)
LINES_PER_LOOK = 4095  # lines or fields between two looks at the stop word: some 0.2 ms; a mask
WORDS_PER_LOOK = 1 << 20  # words or bytes, where they are only counted: 1 ms


@device
def skip_blanks(text: Array, p: int) -> int:
    while text[p] == 32 or text[p] == 9 or text[p] == 13:
        p += 1
    return p


@device
def skip_line(text: Array, p: int) -> int:
    while text[p] != 10:
        p += 1
    return p + 1


@device
def ends_field(byte: int, delimiter: int) -> bool:
    return byte == 10 or byte == 32 or byte == 9 or byte == 13 or byte == delimiter


@device
def _bytes(team: Team, text: Array, start: int) -> Any:
    """This member's share of the bytes from `start`: whole words but for the last of all."""
    lo, hi = share(team, text.size // WORD)
    lo, hi = lo * WORD, hi * WORD
    if team.me == team.size - 1:
        hi = text.size
    return max(lo, start), max(hi, start)


@device
def own_lines(team: Team, text: Array, start: int) -> Any:
    """Where this member's first line starts, and the byte before which its last one does."""
    lo, hi = _bytes(team, text, start)
    if lo > start:
        while lo < hi and text[lo - 1] != 10:
            lo += 1
    return lo, hi


@device
def before(team: Team, counts: Array) -> int:
    total = 0
    for me in range(team.me):
        total += counts[me]
    return total


@device
def whole(text: Array, p: int) -> Any:
    """Read digits: (value, end), or (-1, end) for none and (-2, end) for more than 18."""
    value, q = 0, p
    digit = np.uint8(text[q] - _ZERO)  # one comparison: what is below "0" wraps around
    while digit < _TEN:
        value = value * 10 + np.int64(digit)
        q += 1
        digit = np.uint8(text[q] - _ZERO)
    if q == p:
        value = -1
    elif q - p > 18:
        value = -2
    return value, q


@device
def read_weight(text: Array, p: int, delimiter: int, k: int, values: Array, bits: Array) -> Any:
    """Read the number at text[p] into values[k]; `bits` is `values` seen as int64.

    Returns where it ends, and 0, the kind of problem, or -1 where `float()` is to be asked.
    """
    value, q, status = number(text, p)
    if status == NOT_A_NUMBER or not ends_field(text[q], delimiter):
        return q, NUMBER_EXPECTED
    if status == TOO_LARGE:
        return q, OVERFLOW
    if status == DONE:
        values[k] = value
        return q, 0
    bits[k] = (np.int64(ASK_TAG) << 48) | p
    return q, -1


@kernel
def count_lines(
    team: Team, text: Array, words: Array, start: int, comment: int, counts: Array
) -> None:
    """counts[member] = lines that start in its share, but not with the byte `comment`.

    `words` is the text eight bytes at a time: a byte of `zero` has its top bit set where the
    text has a newline.  Five times as fast as byte by byte.
    """
    lo, hi = _bytes(team, text, start)
    counts[team.me] = 0
    if lo == hi:
        return
    count = 1 if lo == start or text[lo - 1] == 10 else 0
    count -= 1 if text[hi - 1] == 10 else 0  # the next line starts in the next share
    p = lo
    while p < hi and p % WORD != 0:
        count += text[p] == 10
        p += 1
    full = max(p, hi // WORD * WORD)
    total = np.uint64(0)
    for block in range(p // WORD, full // WORD, WORDS_PER_LOOK):
        if stopping(team):
            return
        for i in range(block, min(block + WORDS_PER_LOOK, full // WORD)):
            other = words[i] ^ _NEWLINES
            zero = ~(((other & _LOW7) + _LOW7) | other) & _TOP
            total += ((zero >> np.uint64(7)) * _EACH) >> np.uint64(56)
    count += np.int64(total)
    for p in range(full, hi):
        count += text[p] == 10
    if comment != NO_COMMENT:
        for block in range(lo, hi, WORDS_PER_LOOK):
            if stopping(team):
                return
            for p in range(block, min(block + WORDS_PER_LOOK, hi)):
                count -= (p == start or text[p - 1] == 10) and text[p] == comment
    counts[team.me] = count


@kernel
def records(
    team: Team,
    text: Array,
    spec: Array,
    skipped: Array,
    counts: Array,
    u: Array,
    v: Array,
    w: Array,
    bits: Array,
    found: Array,
    problem: Array,
) -> None:
    """Read lines of `FIELDS` fields: ids from columns U and V, a number from W (-1: none).

    `skipped[c]` says that a line whose first byte is c is a comment; with a `KEY`, every other
    line starts with that byte.  A member writes from the slot of its first line, so only comments
    and blank lines leave gaps.  `bits` is `w` seen as int64.
    """
    delimiter, fields, key, base = spec[DELIMITER], spec[FIELDS], spec[KEY], spec[BASE]
    u_column, v_column, w_column = spec[U], spec[V], spec[W]
    u_limit, v_limit = spec[U_LIMIT], spec[V_LIMIT]
    # most lists are just that, and read twice as fast by a test of the whole line
    plain = fields == 2 and u_column == 0 and v_column == 1 and delimiter == 32 and key == 0
    p, end = own_lines(team, text, spec[START])
    k = before(team, counts)
    first, u_max, v_max, ask, looks = k, -1, -1, 0, 0
    code, where = 0, 0
    steps = 1 + fields // 8  # lines may be long
    while p < end and code == 0:
        looks += steps
        if looks > LINES_PER_LOOK:
            looks = 0
            if stopping(team):
                return
        if plain:
            x, q = whole(text, p)
            if text[q] == 32 or text[q] == 9:
                y, q = whole(text, q + 1)
                q += text[q] == 13
                if text[q] == 10 and base <= x < base + u_limit and base <= y < base + v_limit:
                    u[k], v[k] = x - base, y - base
                    u_max, v_max = max(u_max, x - base), max(v_max, y - base)
                    k += 1
                    p = q + 1
                    continue
        q = skip_blanks(text, p)
        if text[q] == 10:
            p = q + 1
            continue
        if skipped[text[q]]:
            p = skip_line(text, q)
            continue
        if key != 0:
            if text[q] != key or not ends_field(text[q + 1], BLANK_DELIMITER):
                code, where = WRONG_LINE, q
                break
            q = skip_blanks(text, q + 1)
        for field in range(fields):
            where = q
            if text[q] == 10 and (field > 0 or key != 0) and delimiter == BLANK_DELIMITER:
                code = TOO_FEW
                break
            first_end, second_end = field == u_column, field == v_column
            if first_end or second_end:
                x, q = whole(text, q)
                if x == -1 or not ends_field(text[q], delimiter):
                    code = ID_EXPECTED
                    break
                limit = u_limit if first_end else v_limit
                if x == -2 or x < base or x - base >= limit:
                    code = OUT_OF_RANGE
                    break
                x -= base
                if first_end:
                    u[k] = x
                    u_max = max(u_max, x)
                else:
                    v[k] = x
                    v_max = max(v_max, x)
            elif field == w_column:
                q, code = read_weight(text, q, delimiter, k, w, bits)
                if code > 0:
                    break
                ask -= code
                code = 0
            else:
                while text[q] != 10 and text[q] != delimiter:
                    if delimiter == BLANK_DELIMITER and ends_field(text[q], delimiter):
                        break
                    q += 1
            q = skip_blanks(text, q)
            if delimiter != BLANK_DELIMITER and field + 1 < fields:
                if text[q] == 10:
                    code, where = TOO_FEW, q
                    break
                if text[q] != delimiter:
                    code = ID_EXPECTED
                    break
                q = skip_blanks(text, q + 1)
        if code == 0 and text[q] != 10:
            code, where = TOO_MANY, q
        if code == 0:
            k += 1
            p = q + 1
    found[team.me, COUNT] = k - first
    found[team.me, U_MAX] = u_max
    found[team.me, V_MAX] = v_max
    found[team.me, ASK] = ask
    problem[team.me, 0] = code
    problem[team.me, 1] = where


@device
def _not_finite(text: Array, p: int) -> int:
    """End of the word inf or nan (any case, any sign) at p; p where there is none."""
    q = p
    if text[q] == 45 or text[q] == 43:
        q += 1
    start = q
    while 97 <= (text[q] | 32) <= 122:
        q += 1
    if q - start != 3:
        return p
    a, b, c = text[start] | 32, text[start + 1] | 32, text[start + 2] | 32
    inf, nan = a == 105 and b == 110 and c == 102, a == 110 and b == 97 and c == 110
    return q if inf or nan else p


@kernel
def check_table(
    team: Team, text: Array, start: int, ids: int, numbers: int, found: Array, problem: Array
) -> None:
    """Count the lines; each must be blank, or `ids` whole numbers and then `numbers` others."""
    p, end = own_lines(team, text, start)
    looks, lines, code, where = 0, 0, 0, 0
    while p < end and code == 0:
        looks += 1
        if (looks & LINES_PER_LOOK) == 0 and stopping(team):
            return
        q = skip_blanks(text, p)
        if text[q] == 10:
            p = q + 1
            continue
        for field in range(ids + numbers):
            where = q
            if text[q] == 10:
                code = TOO_FEW
                break
            if field < ids:
                if text[q] == 45 or text[q] == 43:
                    q += 1
                x, q = whole(text, q)
                if x == -1 or not ends_field(text[q], BLANK_DELIMITER):
                    code = ID_EXPECTED
                    break
            else:
                _, q, status = number(text, q)
                if status == NOT_A_NUMBER:
                    q = _not_finite(text, where)
                if q == where or not ends_field(text[q], BLANK_DELIMITER):
                    code = NUMBER_EXPECTED
                    break
                if status == TOO_LARGE:
                    code = OVERFLOW
                    break
            q = skip_blanks(text, q)
        if code == 0 and text[q] != 10:
            code, where = TOO_MANY, q
        if code == 0:
            lines += 1
            p = q + 1
    found[team.me, COUNT] = lines
    problem[team.me, 0] = code
    problem[team.me, 1] = where


def new_crew(text: Array, threads: int | None) -> Any:
    """The crew for this text, and arrays for what its members report: counts, found, problem."""
    team = crew(threads, work=text.size // BYTES_PER_STEP)
    return (
        team,
        np.zeros(team.size, np.int64),
        np.zeros((team.size, 4), np.int64),
        np.zeros((team.size, 2), np.int64),
    )


def first_problem(problem: Array) -> tuple[int, int] | None:
    """(kind, byte) of the first malformed line, or None."""
    for code, where in problem:
        if code:
            return int(code), int(where)
    return None


def asked(bits: Array) -> Array:
    """Slots whose value `float()` must read: `bits & POSITION` is the byte of each."""
    return np.flatnonzero((bits >> 48) == ASK_TAG)


POSITION = (1 << 48) - 1


# Adjacency lists

BYTES_PER_LOOK = 1 << 16  # of one line between two looks at the stop word: 0.1 ms

# Arguments of the kernels, one int64 each
ROW_SPEC = 7
FIRST, N, SKIP, WEIGHTED, ROW_BASE, LIMIT, COMMENT = range(ROW_SPEC)


@kernel
def measure_rows(
    team: Team, text: Array, spec: Array, counts: Array, lengths: Array, problem: Array
) -> None:
    """lengths[i] = fields of the i-th line that is no comment; past the last, only blank lines."""
    p, end = own_lines(team, text, spec[FIRST])
    row = before(team, counts)
    looks, code, where = 0, 0, 0
    while p < end:
        looks += 1
        if (looks & LINES_PER_LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        start, length = p, 0
        inside = False
        while text[p] != 10:
            if stopping(team):  # a line may be as long as the file
                return
            look = p + BYTES_PER_LOOK
            while text[p] != 10 and p < look:
                blank = text[p] == 32 or text[p] == 9 or text[p] == 13
                length += (not blank) & (not inside)
                inside = not blank
                p += 1
        p += 1
        if row < spec[N]:
            lengths[row] = length
        elif length > 0:
            code, where = WRONG_LINE, start
            break
        row += 1
    problem[team.me, 0] = code
    problem[team.me, 1] = where


@kernel
def read_rows(
    team: Team,
    text: Array,
    spec: Array,
    counts: Array,
    indptr: Array,
    indices: Array,
    weights: Array,
    bits: Array,
    vertex: Array,
    found: Array,
    problem: Array,
) -> None:
    """Read N lines: SKIP numbers that belong to the row, then ids, each with its weight if asked.

    `measure_rows` has counted them, so every line has the fields that `indptr` says.
    """
    base, limit, skip = spec[ROW_BASE], spec[LIMIT], spec[SKIP]
    p, end = own_lines(team, text, spec[FIRST])
    row = before(team, counts)
    looks, code, where, ask = 0, 0, 0, 0
    while p < end and row < spec[N] and code == 0:
        looks += 1
        if (looks & LINES_PER_LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        p = skip_blanks(text, p)
        for j in range(skip):
            where = p
            value, p, status = number(text, p)
            if status != DONE or not ends_field(text[p], BLANK_DELIMITER):
                code = NUMBER_EXPECTED
                break
            vertex[row, j] = value
            p = skip_blanks(text, p)
        if code != 0:
            break
        for k in range(indptr[row], indptr[row + 1]):
            where = p
            if (k & LINES_PER_LOOK) == 0 and stopping(team):
                return
            x, p = whole(text, p)
            if x == -1 or not ends_field(text[p], BLANK_DELIMITER):
                code = ID_EXPECTED
                break
            if x == -2 or x < base or x - base >= limit:
                code = OUT_OF_RANGE
                break
            indices[k] = x - base
            p = skip_blanks(text, p)
            if spec[WEIGHTED]:
                where = p
                p, code = read_weight(text, p, BLANK_DELIMITER, k, weights, bits)
                if code > 0:
                    break
                ask -= code
                code = 0
                p = skip_blanks(text, p)
        if code == 0:
            p = skip_line(text, p)
            row += 1
    found[team.me, ASK] = ask
    problem[team.me, 0] = code
    problem[team.me, 1] = where
