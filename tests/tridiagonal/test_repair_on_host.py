"""Rows repaired by the GPU's code, run on the host: the order of threads changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tridiagonal_on_host
from matchwood.tridiagonal import check as accuracy
from matchwood.tridiagonal.elements import gpu as gpu_elements
from tridiagonal_systems import NO_COMPILER


def random_system(n: int, p: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shape = (n,) if p == 1 else (n, p, p)
    made = [rng.standard_normal(shape).astype(dtype) for _ in range(3)]
    return [*made, rng.standard_normal((1, n * p)).astype(dtype)]


@pytest.mark.slow
@NO_COMPILER
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("p", "n"), [(1, 200_003), (2, 60_001)])
def test_same_bits_in_any_order(p: int, n: int, dtype: str) -> None:
    system = random_system(n, p, dtype)
    x, lacking, verdict = tridiagonal_on_host.solve(*system)
    assert (lacking, verdict) == (-1, accuracy.RIGHT)
    again = tridiagonal_on_host.solve(*system, backwards=True)
    assert again[1:] == (-1, accuracy.RIGHT)
    assert np.array_equal(again[0], x)


def test_every_round_is_needed_or_repeats_all() -> None:
    """Windows grow from round to round without a gap; the last round has them all."""
    *rounds, last = gpu_elements.REPAIR_ROUNDS
    tried = [reach for one in rounds for reach in windows(one)]
    assert tried == sorted(set(tried)) == windows(last)
    for one in gpu_elements.REPAIR_ROUNDS:
        assert one.zone > 2 * one.most
        assert one.zone % 32 == one.shift % 32 == 0


def windows(one: gpu_elements.RepairRound) -> list[int]:
    """As the loop of `repair` in passes.cuh."""
    return [reach for reach in (1, 4, 16, 64) if one.least <= reach <= one.most]
