"""How evenly entries lie on ranks: our layout beside that of the thesis, 16 x 16."""

from __future__ import annotations

import numpy as np
import pytest

from bench.engines.ranks.balance import GRAPHS, ROWS, largest_share


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rmat 18", "grid 1024^2", "mesh 64^3"])
def test_balance(name):
    A = GRAPHS[name]()
    thesis, ours = (largest_share(A, 16, 16, layout) for layout in ("ranges", "stripes"))
    wanted = ROWS[name]
    assert abs(thesis - wanted.thesis) < 0.05 * wanted.thesis
    assert ours <= wanted.ours + 0.02


def test_hashed_numbers_spread_what_has_structure():
    from matchwood.generators import rmat

    A = rmat(14, permute=False)
    assert largest_share(A, 16, 16, "stripes") > 5
    assert largest_share(A, 16, 16, "stripes", hashed=True) < 1.5


def test_the_share_is_the_largest_over_the_mean():
    import scipy.sparse as sp

    A = sp.csr_array(np.ones((8, 8)))
    assert largest_share(A, 2, 2, "stripes") == 1.0
    one = sp.csr_array(([1.0], ([0], [1])), shape=(8, 8))  # stored both ways
    assert largest_share(one, 2, 2, "stripes") == 2.0
