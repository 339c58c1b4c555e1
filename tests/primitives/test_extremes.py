"""The smallest and the largest number, where some are smaller than others can tell from zero."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.primitives.extremes import extremes

TINY = np.float32(1e-40)
CASES = {
    "one": [TINY],
    "one below zero": [-TINY],
    "tiny": [TINY, 3 * TINY, 2 * TINY],
    "tiny below zero": [-TINY, -3 * TINY, -2 * TINY],
    "both sides": [TINY, -3 * TINY, 0, -1, 7 * TINY],
    "large": [3e38, -3e38, TINY],
    "zero and above": [0.0, TINY],
    "zero and below": [-0.0, -TINY],
    "infinite": [np.inf, TINY, -TINY],
}


def compare(values, found):
    assert all(end.dtype == values.dtype for end in found)
    assert found == (values.min(), values.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_on_the_cpu(name, dtype):
    values = np.array(CASES[name], dtype)
    compare(values, extremes(values))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_on_the_gpu(name, dtype):
    import cupy

    values = np.array(CASES[name], dtype)
    compare(values, extremes(cupy.asarray(values)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8])
def test_many_on_the_gpu(dtype):
    import cupy

    values = np.random.default_rng(3).normal(0, 20, 50_000)
    values = (values * TINY if dtype == np.float32 else values).astype(dtype)
    compare(values, extremes(cupy.asarray(values)))
    compare(values[:1], extremes(cupy.asarray(values[:1])))
