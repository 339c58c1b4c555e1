"""Packets to count: kinds of traffic that are easy to get wrong."""

from __future__ import annotations

import numpy as np

TOP = 2**32 - 1


def zipf(n: int, hosts: int = 1000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few hosts have most packets."""
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1 / np.arange(1, hosts + 1) ** 1.3)
    addresses = rng.integers(0, TOP + 1, hosts, dtype=np.uint32)
    pick = [np.searchsorted(weights, rng.random(n) * weights[-1]) for _ in range(2)]
    return addresses[pick[0]], addresses[pick[1]]


def uniform(n: int, below: int = TOP + 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, below, (2, n), dtype=np.uint32)
    return src.copy(), dst.copy()


def official() -> tuple[np.ndarray, np.ndarray]:
    """The matrix of the challenge's own unit test, as packets."""
    rows = [0, 0, 0, 0, 2, 2, 2, 3, 3, 3, 4, 4]
    columns = [1, 2, 3, 4, 1, 2, 4, 2, 3, 4, 2, 4]
    values = [1, 1, 2, 1, 4, 2, 1, 2, 4, 1, 1, 1]
    return np.repeat(rows, values).astype(np.uint32), np.repeat(columns, values).astype(np.uint32)


def tiny() -> tuple[np.ndarray, np.ndarray]:
    """Eight packets among 10.0.0.1 to 10.0.0.5."""
    pairs = [(1, 2), (1, 2), (1, 3), (2, 1), (4, 3), (4, 3), (4, 3), (5, 3)]
    src, dst = np.array(pairs, np.uint32).T + np.uint32(10 << 24)
    return np.ascontiguousarray(src), np.ascontiguousarray(dst)


CASES = {
    "none": lambda: uniform(0),
    "one": lambda: uniform(1),
    "official": official,
    "tiny": tiny,
    "ends": lambda: (np.array([0, TOP, TOP, 0], np.uint32), np.array([TOP, 0, TOP, 0], np.uint32)),
    "one link": lambda: (np.full(3000, 7, np.uint32), np.full(3000, 9, np.uint32)),
    "one source": lambda: (np.full(3000, 7, np.uint32), uniform(3000)[1]),
    "one destination": lambda: (uniform(3000)[0], np.full(3000, TOP, np.uint32)),
    "dense": lambda: uniform(5000, 20),
    "uniform": lambda: uniform(5000),
    "zipf": lambda: zipf(5000),
}
