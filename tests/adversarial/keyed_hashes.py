"""The hashes of primitives/inspect from their definitions, for many keys at the same time."""

from __future__ import annotations

import numpy as np

from matchwood.primitives.inspect import gpu, keys

WORDS, BETWEEN, FIRST, SECOND = gpu.SOURCE.constants(
    "KEY_WORDS", "ROUNDS_BETWEEN", "ROUNDS_FIRST", "ROUNDS_SECOND"
)
LOW = np.uint64(0xFFFF_FFFF)
HALF = np.uint64(32)


def cpu_keys(rng, count):
    """A key whose numbers are arrays: one for each of `count` keys."""
    draws = {name: rng.integers(0, 2**64, count, dtype=np.uint64) for name in keys.Key._fields}
    return keys.Key(**{k: v if k in keys.TERMS else v | np.uint64(1) for k, v in draws.items()})


def _mixed(h, again):
    h = (h ^ (h >> HALF)) * again
    return h ^ (h >> np.uint64(29))


def _step(h, multiplier):
    h = h * multiplier
    return h ^ (h >> np.uint64(31))


def cpu_vertex(key, v):
    """x1, y1, x2, y2."""
    a = _mixed(np.asarray(v, np.uint64) * key.spread + key.start, key.again)
    b = _step(a, key.step1)
    c = _step(b, key.step2)
    return a, b, c, _step(c, key.step3)


def cpu_value(key, bits):
    if bits == 0:
        return key.value_start
    return _mixed(np.uint64(bits) * key.value_spread + key.value_start, key.value_again)


def cpu_entry(key, i, j, bits=None):
    """What entry (i, j) adds to the two sums."""
    x1, y1, x2, y2 = cpu_vertex(key, i)
    p1, q1, p2, q2 = cpu_vertex(key, j)
    h = np.uint64(1) if bits is None else cpu_value(key, bits)
    return (x1 * q1 - y1 * p1) * h, (x2 * q2 - y2 * p2) * h


def gpu_keys(rng, count):
    high = np.uint64(1 << 32 | 1 << 63)
    return [rng.integers(0, 2**64, count, dtype=np.uint64) | high for _ in range(WORDS)]


def gpu_entry(key, i, j, bits=None, *, wide=False):
    """What entry (i, j) adds to the two sums."""
    u, v = min(i, j), max(i, j)
    parts = [(u & 0xFFFF_FFFF, v & 0xFFFF_FFFF)]
    parts += [(u >> 32, v >> 32)] if wide else []
    parts += [(bits & 0xFFFF_FFFF, bits >> 32)] if bits is not None else []
    a = b = np.zeros_like(key[0])
    at = 0

    def mix(rounds):
        nonlocal a, b, at
        for _ in range(rounds):
            word = key[at % WORDS]
            product = a * (word >> HALF)
            a, b = (product >> HALF) ^ b ^ (word & LOW), product & LOW
            at += 1

    for k, (low, high) in enumerate(parts):
        if k:
            mix(BETWEEN)
        a, b = a ^ np.uint64(low), b ^ np.uint64(high)
    mix(FIRST)
    first = a << HALF | b
    a, b = a ^ np.uint64(parts[0][0]), b ^ np.uint64(parts[0][1])
    mix(SECOND)
    second = a << HALF | b
    return (first, second) if i < j else (-first, -second)
