"""The hashes as device functions, and over whole arrays on a team.

Numba turns uint64 with int64 into float64, and any sum of uint32 into uint64.  So operands are
converted to unsigned types and results are cut to 32 bits explicitly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, inlined, kernel, share, stopping
from matchwood.engines.cpu.hints import rotated

Array = np.ndarray[Any, Any]

BLOCK = 1 << 14  # elements between two checks of the stop word

_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_H0, _H1, _H2, _H3 = 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476
_K = tuple(math.floor(abs(math.sin(i + 1)) * 2**32) for i in range(16))


@device
def mix64(x: Any) -> Any:
    """Scramble 64 bits, one to one.  x: uint64."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@device
def hash2(u: Any, v: Any, seed: Any) -> Any:
    """64 bits from two integers of any type and a uint64 seed."""
    h = mix64(np.uint64(seed) + _GOLDEN)
    h = mix64(h ^ np.uint64(np.int64(u)))
    return mix64(h ^ np.uint64(np.int64(v)))


@device
def _step(a0: Any, a1: Any, a2: Any, a3: Any, word: Any, k: int, left: int) -> Any:
    """The new a1 of one step of MD5's first quarter."""
    chosen = np.uint32((a1 & a2) | (~a1 & a3))
    turned = rotated(np.uint32(a0 + chosen + np.uint32(k) + word), np.uint32(left))
    return np.uint32(a1 + turned)


@inlined
def _four_steps(
    h: Any, a0: Any, a1: Any, a2: Any, a3: Any, word: Any, r: Any, k0: int, k1: int, k2: int,
    k3: int,
) -> Any:  # fmt: skip
    """Four steps, after which the words are back in their places.  `h` is h0 + h1 + h2 + h3.

    A step renames (a0, a1, a2, a3) to (a3, new, a1, a2).  Written out, in 32 bits and inlined, so
    that a loop over vertices runs on vector registers: 2.8 instead of 46 ns a vertex.
    """
    a0 = _step(a0, a1, a2, a3, word, k0, 7)  # now in turn: a3, a0, a1, a2
    h = np.uint32(h + a0 + a1 + a2 + a3)
    word = np.uint32(word * r)
    a3 = _step(a3, a0, a1, a2, word, k1, 12)
    h = np.uint32(h + a0 + a1 + a2 + a3)
    word = np.uint32(word * r)
    a2 = _step(a2, a3, a0, a1, word, k2, 17)
    h = np.uint32(h + a0 + a1 + a2 + a3)
    word = np.uint32(word * r)
    a1 = _step(a1, a2, a3, a0, word, k3, 22)
    h = np.uint32(h + a0 + a1 + a2 + a3)
    word = np.uint32(word * r)
    return h, a0, a1, a2, a3, word


@inlined
def quarter_md5(v: Any, r: Any) -> Any:
    """32 bits from a vertex and the number of the round."""
    word, r = np.uint32(v), np.uint32(r)
    a0, a1, a2, a3 = np.uint32(_H0), np.uint32(_H1), np.uint32(_H2), np.uint32(_H3)
    h = np.uint32(_H0 + _H1 + _H2 + _H3)
    h, a0, a1, a2, a3, word = _four_steps(h, a0, a1, a2, a3, word, r, _K[0], _K[1], _K[2], _K[3])
    h, a0, a1, a2, a3, word = _four_steps(h, a0, a1, a2, a3, word, r, _K[4], _K[5], _K[6], _K[7])
    h, a0, a1, a2, a3, word = _four_steps(h, a0, a1, a2, a3, word, r, _K[8], _K[9], _K[10], _K[11])
    h, a0, a1, a2, a3, word = _four_steps(
        h, a0, a1, a2, a3, word, r, _K[12], _K[13], _K[14], _K[15]
    )
    return h


@inlined
def random_bit(v: Any, r: Any, barrier: Any) -> bool:
    """True with probability p, where `barrier` is `bit_barrier(p)` as uint64."""
    return np.uint64(quarter_md5(v, r)) < barrier


@kernel
def _mix64(team: Team, x: Any, out: Any) -> None:
    lo, hi = share(team, x.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        source, target = x[start : min(start + BLOCK, hi)], out[start : min(start + BLOCK, hi)]
        for i in range(source.size):
            target[i] = mix64(source[i])


@kernel
def _hash2(team: Team, u: Any, v: Any, seed: Any, out: Any) -> None:
    lo, hi = share(team, u.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        us, vs = u[start : min(start + BLOCK, hi)], v[start : min(start + BLOCK, hi)]
        target = out[start : min(start + BLOCK, hi)]
        for i in range(us.size):
            target[i] = hash2(us[i], vs[i], seed)


@kernel
def _quarter_md5(team: Team, v: Any, r: Any, out: Any) -> None:
    lo, hi = share(team, v.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        source, target = v[start : min(start + BLOCK, hi)], out[start : min(start + BLOCK, hi)]
        for i in range(source.size):
            target[i] = quarter_md5(source[i], r)


@kernel
def _random_bit(team: Team, v: Any, r: Any, barrier: Any, out: Any) -> None:
    lo, hi = share(team, v.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        source, target = v[start : min(start + BLOCK, hi)], out[start : min(start + BLOCK, hi)]
        for i in range(source.size):
            target[i] = random_bit(source[i], r, barrier)


def mix64_array(x: Array, *, threads: int | None = None) -> Array:
    out = np.empty(x.size, np.uint64)
    crew(threads, work=x.size).run(_mix64, np.ascontiguousarray(x), out)
    return out


def hash2_array(u: Array, v: Array, seed: int, *, threads: int | None = None) -> Array:
    out = np.empty(u.size, np.uint64)
    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    crew(threads, work=2 * u.size).run(_hash2, u, v, np.uint64(seed), out)
    return out


def quarter_md5_array(v: Array, r: int, *, threads: int | None = None) -> Array:
    out = np.empty(v.size, np.uint32)
    team = crew(threads, work=8 * v.size)
    team.run(_quarter_md5, np.ascontiguousarray(v), np.uint64(r), out)
    return out


def random_bit_array(v: Array, r: int, barrier: int, *, threads: int | None = None) -> Array:
    """See matchwood.primitives.hashing.random_bit; `barrier` is `bit_barrier(p)`."""
    out = np.empty(v.size, np.bool_)
    team = crew(threads, work=8 * v.size)
    team.run(_random_bit, np.ascontiguousarray(v), np.uint64(r), np.uint64(barrier), out)
    return out
