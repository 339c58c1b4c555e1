"""
Elimination orders: factors with few entries
============================================

A sparse system is solved by factorising its matrix.  How many entries the factors have, and how
long that takes, depends on the order of the unknowns alone.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import matchwood

# %%
# The matrix of a triangulation, in three orders.  `fill` counts the entries of L without computing
# any of them.

n = 8000
A = matchwood.generators.delaunay(n, rng=3)
cut = matchwood.nested_dissection(A)
orders = {
    "reverse Cuthill-McKee": matchwood.reverse_cuthill_mckee(A),
    "minimum degree": matchwood.minimum_degree(A),
    "nested dissection": cut.perm,
}
for name, perm in orders.items():
    costs = matchwood.fill(A, perm)
    print(f"{name:22} {costs.entries:>9,} entries of L, {costs.operations:>12,} operations, "
          f"tree of height {costs.height:,}")  # fmt: skip

# %%
# A factorisation by SuperLU keeps to these numbers, if it is told to keep the order.

definite = sp.csr_array(sp.diags_array(np.full(n, 30.0)) - A)
for name, perm in orders.items():
    B = sp.csc_matrix(matchwood.permute(definite, perm))
    begin = time.perf_counter()
    factors = splu(B, permc_spec="NATURAL", diag_pivot_thresh=0, options={"SymmetricMode": True})
    seconds = time.perf_counter() - begin
    print(f"{name:22} {factors.L.nnz:>9,} entries, {seconds:.2f} s")

# %%
# Where they come from: the vertices of the separators, the larger ones darker.  A separator is
# eliminated after all that it separates.

points = matchwood.generators.random_points(n, rng=3)
level = np.zeros(cut.tree.size, int)
for k in reversed(range(cut.tree.size - 1)):  # parents come after their children
    level[k] = level[cut.tree[k]] + 1
node = np.repeat(np.arange(cut.tree.size), np.diff(cut.starts))
shown = cut.separators[node]
fig, ax = plt.subplots(figsize=(5.6, 5.2))
ax.scatter(*points.T, s=1, color="0.85")
dots = ax.scatter(*points[cut.perm[shown]].T, c=level[node[shown]], s=9, cmap="viridis")
fig.colorbar(dots, label="level of the separator")
ax.set(aspect="equal", xticks=[], yticks=[], title="separators of separators")
fig.tight_layout()

# %%
# The better of both, and a check of what was claimed.

best = matchwood.elimination_order(A)
print(best)
matchwood.check.check_dissection(A, cut)
matchwood.check.check_fill(A, best.fill, best)
plt.show()
