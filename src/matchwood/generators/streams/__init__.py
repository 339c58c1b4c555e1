"""Random numbers that depend on a seed, a stream and a counter, and on nothing else.

A generator that computes each number from the one before gives a graph that depends on how threads
share the work.  Here number k of a stream is computed from k alone, so any thread of any engine can
compute any of them, and all make the same graph:

    key(seed, stream) = mix64(mix64(seed) + stream * GOLDEN)
    value(key, k)     = mix64(key + k * GOLDEN)                   all modulo 2^64

which makes value(key, 1), value(key, 2), ... the output of SplitMix64 [1]_ started at `key`.
`mix64` and GOLDEN are those of `matchwood.primitives.hashing`.  Values are compared with whole
numbers (`threshold`) and turned into fractions that a float holds exactly, never rounded ones:
so the engines agree in every bit.

Read on in reference.py (NumPy) and cpu.py (for kernels); in CUDA it is a line of each `.cu` file.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood. Fast splittable pseudorandom number generators.
   OOPSLA 2014. doi:10.1145/2660193.2660195
"""

from __future__ import annotations

from fractions import Fraction

from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_number

# The streams; a new one gets the next number, so that old graphs stay as they are.
QUADRANTS, LABELS, EDGES, PAIRS, POINTS, WEIGHTS, PACKETS = range(7)


def key(seed: int, stream: int) -> int:
    """Where a stream starts."""
    return mix64_number(mix64_number(seed) + stream * GOLDEN)


def value(key: int, k: int) -> int:
    """Number k of the stream that starts at `key`."""
    return mix64_number(key + k * GOLDEN)


def threshold(probability: float | Fraction, bits: int) -> int:
    """A random integer of `bits` bits is less than this with the given probability."""
    return round(Fraction(probability) * 2**bits)
