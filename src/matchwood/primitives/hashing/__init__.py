"""Hashes that give the same bits on every engine.  Read on in reference.py, cpu.py, gpu.py.

    mix64(x)              64 bits to 64 bits, one to one, each output bit depends on all of x
    hash2(u, v, seed)     64 bits from two numbers and a seed: for ties and random numbers
    quarter_md5(v, r)     32 bits, the first quarter of MD5 over v, r v, r^2 v, ...
    random_bit(v, r, p)   True with probability p: quarter_md5(v, r) < p 2^32
    round_number(seed, k) the odd r of round k

The engines' files hold them as device functions for kernels; those below take whole arrays.

`mix64` is the finaliser of splitmix64 [1]_ (constants: Stafford's variant 13 [2]_):

    x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9
    x ^= x >> 27;  x *= 0x94D049BB133111EB
    x ^= x >> 31

`hash2` mixes in the seed, then u, then v, each as a 64-bit number (signed ones sign-extended, so
that int32 and int64 vertices hash alike):

    hash2(u, v, seed) = mix64(mix64(mix64(seed + 0x9E3779B97F4A7C15) ^ u) ^ v)

`quarter_md5` is Algorithm 4 of Fagginger Auer and Bisseling [3]_ with the constants of MD5 [4]_:
K(i) = floor(2^32 |sin(i + 1)|), R(i) = 7, 12, 17, 22 in turn.  From h = a = (67452301, efcdab89,
98badcfe, 10325476) hexadecimal, 16 steps of

    f = (a1 and a2) or (not a1 and a3)
    a = (a3, a1 + rol(a0 + f + K(i) + v, R(i)), a1, a2)
    h += a
    v *= r

and the result is h0 + h1 + h2 + h3, all modulo 2^32.  As in the paper's listing (and unlike MD5
itself) the words are added to h after every step.  An odd r keeps r^i v from becoming 0.  The
array of v = 0 is 0 whatever r is: vertex 0 has the same bit in all rounds.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood. Fast splittable pseudorandom number generators.
   OOPSLA 2014. doi:10.1145/2660193.2660195
.. [2] D. Stafford. Better bit mixing: improving on MurmurHash3's 64-bit finalizer, 2011.
.. [3] B. O. Fagginger Auer, R. H. Bisseling. A GPU algorithm for greedy graph matching.
   Facing the Multicore-Challenge II, 2012. doi:10.1007/978-3-642-30397-5_10
.. [4] R. Rivest. The MD5 message-digest algorithm. RFC 1321, 1992. doi:10.17487/RFC1321
"""

from __future__ import annotations

from typing import Any

from matchwood.arguments import INDEX, count, real, same_size, vector
from matchwood.engines import call, location, resolve
from matchwood.primitives.hashing.reference import GOLDEN as GOLDEN
from matchwood.primitives.hashing.reference import MASK64, hash2_number

__all__ = ["mix64", "hash2", "quarter_md5", "random_bit", "bit_barrier", "round_number"]


def mix64(x: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Scramble 64-bit numbers, one to one.

    Parameters
    ----------
    x : (n,) uint64 array
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `x` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    mixed : (n,) uint64 array

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.hashing import mix64
    >>> hex(mix64(np.array([0x9E3779B97F4A7C15], dtype=np.uint64))[0])
    '0xe220a8397b1dcdaf'
    """
    x = vector("mix64", "x", x, ("uint64",))
    resolve(location(x), engine, "mix64")
    return call(__name__, "mix64_array", (x,), engine, threads=threads)


def hash2(
    u: Any, v: Any, seed: int = 0, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """Hash pairs of numbers; the order of the two counts.

    Parameters
    ----------
    u, v : (n,) arrays of int32 or int64
    seed : int
        Taken modulo 2^64.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `u` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    hashes : (n,) uint64 array

    Examples
    --------
    The type of the vertices does not matter, their order does:

    >>> import numpy as np
    >>> from matchwood.primitives.hashing import hash2
    >>> u, v = np.array([1, 2], dtype=np.int32), np.array([2, 1], dtype=np.int64)
    >>> a, b = hash2(u, v, seed=7)
    >>> bool(a == b), bool(a == hash2(v, u, seed=7)[1])
    (False, True)
    """
    u = vector("hash2", "u", u, INDEX)
    v = vector("hash2", "v", v, INDEX)
    same_size("hash2", "v", v, "u", u)
    seed = _integer("hash2", "seed", seed) & MASK64
    resolve(location(u), engine, "hash2")
    return call(__name__, "hash2_array", (u, v, seed), engine, threads=threads)


def quarter_md5(v: Any, r: int, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Hash vertices to 32 bits by the first quarter of MD5.

    Parameters
    ----------
    v : (n,) array of int32 or int64
        Vertices, taken modulo 2^32.
    r : int
        The number of the round, in 0 .. 2^32 - 1; `round_number` makes good ones.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `v` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    words : (n,) uint32 array

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.hashing import quarter_md5
    >>> [hex(word) for word in quarter_md5(np.array([0, 1, 2]), 3)]
    ['0xb2c945a7', '0xdea8e0c8', '0x43e35b5a']
    """
    v = vector("quarter_md5", "v", v, INDEX)
    r = _round("quarter_md5", r)
    resolve(location(v), engine, "quarter_md5")
    return call(__name__, "quarter_md5_array", (v, r), engine, threads=threads)


def random_bit(
    v: Any, r: int, p: float = 0.5, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """The random bit of each vertex: True with probability `p`.

    Parameters
    ----------
    v : (n,) array of int32 or int64
    r : int
        The number of the round, in 0 .. 2^32 - 1; `round_number` makes good ones.
    p : float
        In 0 .. 1.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `v` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    bits : (n,) bool array
        ``quarter_md5(v, r) < p * 2**32``

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.hashing import random_bit, round_number
    >>> bits = random_bit(np.arange(10_000), round_number(0, 1), 0.25)
    >>> bool(abs(bits.mean() - 0.25) < 0.02)
    True
    """
    v = vector("random_bit", "v", v, INDEX)
    r = _round("random_bit", r)
    barrier = bit_barrier(real("random_bit", "p", p, 0, 1))
    resolve(location(v), engine, "random_bit")
    return call(__name__, "random_bit_array", (v, r, barrier), engine, threads=threads)


def bit_barrier(p: float) -> int:
    """The integer b, 0 .. 2^32, with ``word < b`` exactly when ``word < p * 2**32``.

    Examples
    --------
    >>> from matchwood.primitives.hashing import bit_barrier
    >>> bit_barrier(0.5) == 2**31, bit_barrier(0.0), bit_barrier(1.0) == 2**32
    (True, 0, True)
    """
    p = real("bit_barrier", "p", p, 0, 1)
    return -int(-(p * 2**32) // 1)  # rounded up; the product is exact


def round_number(seed: int, k: int) -> int:
    """The number r of round k: odd, below 2^32, from the seed by `hash2`.

    Examples
    --------
    >>> from matchwood.primitives.hashing import round_number
    >>> round_number(0, 0) % 2, round_number(0, 0) != round_number(0, 1)
    (1, True)
    """
    seed = _integer("round_number", "seed", seed) & MASK64
    return hash2_number(0, _integer("round_number", "k", k), seed) >> 32 | 1


def _integer(function: str, name: str, value: Any) -> int:
    return count(function, name, value, -(1 << 63), (1 << 64) - 1)


def _round(function: str, r: Any) -> int:
    if count(function, "r", r) >= 1 << 32:
        raise ValueError(f"{function}: r must be below 2**32, got {r}")
    return int(r)
