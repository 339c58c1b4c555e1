"""Roots of forests on the GPU: the answers and the errors of the reference."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from traversal.test_pointer_jumping import a_forest, outcome

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_equals_the_reference(kind):
    cupy = pytest.importorskip("cupy")
    for n, back in ((0, 1), (1, 1), (50, 2), (3000, 1), (3000, 40)):
        parent = a_forest(n, back).astype(kind)
        found = matchwood.forest_roots(cupy.asarray(parent))
        assert found.dtype == kind
        assert np.array_equal(found.get(), matchwood.forest_roots(parent, engine="reference"))
        matchwood.check.check_forest_roots(cupy.asarray(parent), found)
    parent = a_forest(1 << 20, 1).astype(kind)
    assert np.array_equal(
        matchwood.forest_roots(parent, engine="gpu"), matchwood.forest_roots(parent)
    )


def test_cycles_are_named_as_by_the_reference():
    rng = np.random.default_rng(1)
    for n in (2, 3, 8, 64, 100, 1000) * 5:
        parent = rng.integers(-1, n, n)
        assert outcome(parent, engine="gpu") == outcome(parent, engine="reference")
    for length in (2, 4, 1024, 1 << 16):  # pointers on such a cycle come back to themselves
        parent = np.roll(np.arange(length), 1)
        text = "forest_roots: parent must lead to roots, got a cycle above vertex 0"
        assert outcome(parent, engine="gpu") == text
