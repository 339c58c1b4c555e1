"""Decimal text to float64, rounded as `float()` rounds, inside a kernel.

`number` reads one number: w * 10**q with an integer w < 2**64, or between that and the same with
w + 1 where there are more than 19 digits.  Three ways, from quick to slow:

1.  w and 10**abs(q) both exact in a float64: one multiplication or division [1]_.
2.  the 128-bit product of w and 5**q from a table, which decides the rounding in all but a few
    cases in a thousand million [2]_.
3.  left to the caller (`UNSURE`), who asks `float()`: those few, and subnormal results.

.. [1] W. D. Clinger. How to read floating point numbers accurately. PLDI 1990.
   doi:10.1145/93542.93557
.. [2] D. Lemire. Number parsing at a gigabyte per second. Softw. Pract. Exp. 51(8), 2021.
   doi:10.1002/spe.2984
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device

Bytes = np.ndarray[Any, Any]

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
_TEN, _10, _ASCII_0 = np.uint64(10), np.uint8(10), np.uint8(48)


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
    return np.ldexp(np.float64(mantissa), exponent - 52), True


@device
def _digits(text: Bytes, p: int, w: Any) -> Any:
    """w followed by the digits at text[p], and where they end."""
    digit = np.uint8(text[p] - _ASCII_0)
    while digit < _10:
        w = w * _TEN + np.uint64(digit)
        p += 1
        digit = np.uint8(text[p] - _ASCII_0)
    return w, p


@device
def _leading(text: Bytes, p: int) -> Any:
    """The first 19 digits from text[p], over the decimal point."""
    w, taken = _0, 0
    while taken < _DIGITS:
        if text[p] != 46:
            w = w * _TEN + np.uint64(text[p] - 48)
            taken += 1
        p += 1
    return w


@device
def number(text: Bytes, p: int) -> Any:
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
