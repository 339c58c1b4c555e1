"""Two sums over the words of an array, on a team of threads: see `checksum` of __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, kernel, share, stopping
from matchwood.primitives.inspect import SPREAD

Array = np.ndarray[Any, Any]

_SPREAD, _S32, _ZERO = np.uint64(SPREAD), np.uint64(32), np.uint64(0)
_BLOCK = np.uint64(1 << 16)  # words between two checks of the stop word
_WORDS_PER_STEP = 1  # in the 2 ns of a step of `crew`
_LINE = 8  # words of a cache line, one for each member


@kernel
def _sum_words(team: Any, words: Array, sums: Array) -> None:
    """Each member adds up its share; additions modulo 2^64 may come in any order."""
    lo, hi = share(team, words.size)
    first, last = np.uint64(lo), np.uint64(hi)
    one = two = _ZERO
    for block in range(first, last, _BLOCK):
        if stopping(team):
            return
        for k in range(block, min(block + _BLOCK, last)):
            u = np.uint64(words[k]) * _SPREAD
            one += u ^ (u >> _S32)
            two += one  # so the first word counts most often; products are slow on some CPUs
    sums[team.rank, 0] = one
    sums[team.rank, 1] = two + one * np.uint64(words.size - hi)


def word_sums(words: Array, *, threads: int | None = None) -> tuple[int, int]:
    team = crew(threads, work=words.size // _WORDS_PER_STEP)
    sums = np.zeros((team.size, _LINE), np.uint64)
    team.run(_sum_words, words, sums)
    one, two = sums[:, :2].sum(axis=0).tolist()
    return one, two
