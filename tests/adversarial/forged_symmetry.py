"""Forging symmetry: arcs, all upwards, whose hashes cancel under a key that is known.

Wagner's generalised birthday: many lists of arcs, merged two by two; each merge keeps the pairs
whose sums vanish in a few more bits.  With 2^9 lists 128 bits take 9 rounds of merges.  That takes
some seconds, so what it found is kept beside this file.  To find it anew, where the CPU's hashes
have changed:

    PYTHONPATH=src:tests python -m adversarial.forged_symmetry
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adversarial.keyed_hashes import cpu_vertex
from matchwood.primitives.inspect import keys

FILE = Path(__file__).with_name("forged_arcs.txt")
VERTICES = 4096
LISTS, LENGTH, KEPT = 512, 9_000, 11_000
WINDOWS = [(0, 0, 13), (0, 13, 13), (0, 26, 13), (0, 39, 13), (0, 52, 12),
           (1, 0, 13), (1, 13, 13), (1, 26, 13), (1, 39, 25)]  # fmt: skip


def known_key():
    """A key that everyone can know."""
    rng = np.random.default_rng(5)
    return keys.draw(lambda _: int(rng.integers(0, 2**64, dtype=np.uint64)))


def forged_arcs():
    """(u, v) with u < v that pass as symmetric under the known key."""
    return np.loadtxt(FILE, dtype=np.int64).T


def search(key):
    """Find such arcs."""
    x1, y1, x2, y2 = cpu_vertex(key, np.arange(VERTICES))
    v, u = (side[: LISTS * LENGTH] for side in np.tril_indices(VERTICES, -1))
    sums = np.stack([x1[u] * y1[v] - y1[u] * x1[v], x2[u] * y2[v] - y2[u] * x2[v]])
    lists = [sums[:, k : k + LENGTH] for k in range(0, u.size, LENGTH)]
    levels = []
    for window in WINDOWS:
        joined = [_merged(lists[k], lists[k + 1], *window) for k in range(0, len(lists), 2)]
        lists = [found for found, _, _ in joined]
        levels.append([(i, j) for _, i, j in joined])
    assert lists[0].shape[1], "no luck with this key"
    members = [0]
    for level in reversed(levels):
        members = [int(side[k]) for k, node in zip(members, level, strict=True) for side in node]
    chosen = np.array(members) + LENGTH * np.arange(LISTS)
    return u[chosen], v[chosen]


def _merged(a, b, word, shift, bits):
    """Pairs whose sums vanish in `bits` bits from `shift` on; those below vanish already."""
    mask = np.uint64((1 << bits) - 1)
    have = (b[word] >> np.uint64(shift) & mask).astype(np.int32)
    want = ((np.uint64(0) - (a[word] >> np.uint64(shift))) & mask).astype(np.int32)
    order = np.argsort(have, kind="stable")
    have = have[order]
    first, last = np.searchsorted(have, want, "left"), np.searchsorted(have, want, "right")
    count = last - first
    i = np.repeat(np.arange(want.size), count)[:KEPT]
    offset = (np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count))[:KEPT]
    j = order[first[i] + offset]
    return a[:, i] + b[:, j], i, j


if __name__ == "__main__":
    np.savetxt(FILE, np.stack(search(known_key())).T, fmt="%d")
