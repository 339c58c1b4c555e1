"""What the engines are told: whole numbers only, so that none can round differently."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from matchwood.generators import streams

LABEL_ROUNDS = 4  # rounds of the renumbering; it only has to hide the order of the degrees

# Rounds of the Feistel network.  Where the halves have few bits it needs more of them: with 8,
# a chi-square test over all graphs of 4 vertices still rejects it, with 16 it does not.
ROUNDS, ROUNDS_OF_SMALL, SMALL_BITS = 6, 16, 24


class RMAT(NamedTuple):
    """`samples` edges; quarters by 32 bits against thresholds for a, a + b, a + b + c."""

    n: int
    seed: int
    directed: bool
    scale: int
    samples: int
    key: int
    thresholds: tuple[int, int, int]
    permute: bool
    labels: tuple[int, ...]  # multiplier, increment, multiplier, ... of the renumbering


class GNM(NamedTuple):
    """Edges p(0) .. p(m - 1) of `pairs`; p permutes 0 .. 2^bits - 1, a round for each key."""

    n: int
    seed: int
    directed: bool
    m: int
    pairs: int
    bits: int
    keys: tuple[int, ...]


class Bernoulli(NamedTuple):
    """Each pair whose value, 53 bits of it, is less than the threshold."""

    n: int
    seed: int
    directed: bool
    key: int
    threshold: int


def rmat(
    scale: int,
    samples: int,
    quarters: tuple[float, ...],
    seed: int,
    *,
    directed: bool,
    permute: bool,
) -> RMAT:
    a, b, c, d = (Fraction(p) for p in quarters)
    total = a + b + c + d  # 1 but for rounding
    bounds = (a, a + b, a + b + c)
    first, second, third = (streams.threshold(bound / total, 32) for bound in bounds)
    start = streams.key(seed, streams.LABELS)
    numbers = [streams.value(start, k) for k in range(2 * LABEL_ROUNDS)]
    numbers[::2] = [number | 1 for number in numbers[::2]]
    key = streams.key(seed, streams.QUADRANTS)
    thresholds = (first, second, third)
    return RMAT(2**scale, seed, directed, scale, samples, key, thresholds, permute, tuple(numbers))


def gnm(n: int, m: int, seed: int, *, directed: bool) -> GNM:
    pairs = n * (n - 1) // (1 if directed else 2)
    bits = max(2, (pairs - 1).bit_length()) if pairs else 2
    start = streams.key(seed, streams.EDGES)
    rounds = ROUNDS_OF_SMALL if bits < SMALL_BITS else ROUNDS
    keys = tuple(streams.value(start, k) for k in range(rounds))
    return GNM(n, seed, directed, m, pairs, bits, keys)


def bernoulli(n: int, density: float, seed: int, *, directed: bool) -> Bernoulli:
    key = streams.key(seed, streams.PAIRS)
    return Bernoulli(n, seed, directed, key, streams.threshold(density, 53))
