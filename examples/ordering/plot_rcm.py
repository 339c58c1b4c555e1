"""
Reverse Cuthill-McKee: entries near the diagonal
================================================

The same graph can have its vertices numbered in many ways.  A good order puts the entries of its
matrix near the diagonal: products with it stay in the cache, and factors stay sparse.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import matchwood

# %%
# A triangulation whose vertices are numbered at random, and the same in the new order.

n = 3000
A = matchwood.generators.delaunay(n, rng=5)
found = matchwood.rcm_ordering(A)
B = matchwood.permute(A, found.perm)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6))
for ax, matrix, measured in zip(axes, (A, B), (found.before, found.after), strict=True):
    ax.spy(matrix, markersize=0.4)
    ax.set_title(f"bandwidth {measured.bandwidth:,}, profile {measured.profile:,}")
    ax.set(xticks=[], yticks=[])
fig.tight_layout()

# %%
# Where the vertices come in the order: it sweeps over the points as a wave does.

points = matchwood.generators.random_points(n, rng=5)
fig, ax = plt.subplots(figsize=(5.4, 4.6))
dots = ax.scatter(*points.T, c=found.place, s=7)
fig.colorbar(dots, label="place in the order")
ax.set(aspect="equal", xticks=[], yticks=[])
fig.tight_layout()

# %%
# The start matters.  From the middle of a long grid the levels go both ways, and are twice as wide.

long = matchwood.generators.grid((120, 25))
starts = {"rim": matchwood.pseudo_peripheral_vertex(long), "middle": 60 * 25 + 12}
for name, start in starts.items():
    order = matchwood.reverse_cuthill_mckee(long, start=start)
    print(f"start at the {name}: bandwidth {matchwood.bandwidth(long, order)}")

# %%
# The factors of a matrix in the new order fill in only within the band.


def fill(matrix: sp.csr_array) -> int:
    """Entries of the factors, in the order of the matrix."""
    definite = sp.csc_array(sp.diags_array(np.full(n, 30.0)) - matrix)
    factors = splu(definite, permc_spec="NATURAL", options={"SymmetricMode": True})
    return int(factors.L.nnz + factors.U.nnz)


print(f"entries of the factors: {fill(A):,} before, {fill(B):,} after")

# %%
# All methods give the same order, which can be checked against its definition.

for method in ("serial", "leveled", "unordered", "batch_basic", "batch"):
    assert np.array_equal(matchwood.reverse_cuthill_mckee(A, method=method), found.perm)
matchwood.check.check_rcm_order(A, found)
plt.show()
