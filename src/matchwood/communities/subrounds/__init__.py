"""How a round is split: a vertex looks around in one of several sub-rounds, by a hash.

Vertices that decide at the same moment see the same state, and neighbours may swap labels for ever.
So a round has sub-rounds, and the vertices of one see what those before it did.  The split differs
from round to round, else the same neighbours would decide together again and again.

`turns_of` is the definition.  cpu.py and gpu.py deal out the vertices of a round; subrounds.cuh, in
the folder above, is what CUDA kernels do in a sub-round.
"""

from __future__ import annotations

from matchwood.primitives.hashing.reference import hash2_number

SUBROUNDS = 16  # sub-rounds of a round
SMALL_VERTICES = 1 << 14  # graphs with fewer have more sub-rounds ...
MOST_SUBROUNDS = 256  # ... up to this number: nothing can run in parallel there anyway


def subrounds_of(n: int) -> int:
    """Sub-rounds for n vertices; vertex v is in number hash2(v, round, seed) modulo that."""
    return SUBROUNDS if n >= SMALL_VERTICES else max(1, min(n, MOST_SUBROUNDS))


def turns_of(n: int, round_number: int, seed: int) -> list[list[int]]:
    """The vertices of each sub-round; for the reference."""
    parts = subrounds_of(n)
    turns: list[list[int]] = [[] for _ in range(parts)]
    for v in range(n):
        turns[hash2_number(v, round_number, seed) % parts].append(v)
    return turns
