"""
Linear forests: strong edges next to the diagonal
=================================================

A linear forest is a set of disjoint paths that hold every vertex.  In the order along the paths
their edges lie next to the diagonal, so a tridiagonal solver can use them.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection

import matchwood

# %%
# A problem on a grid that couples strongly along one diagonal.  The order of its rows does not
# show that: next to the diagonal of the matrix lies little.

side = 18
A = matchwood.generators.aniso(2, (side, side))
forest = matchwood.linear_forest(A)
print(f"as given {matchwood.coverage_of_order(A):.0%}, along the paths {forest.coverage:.0%}")

places = np.stack(np.divmod(np.arange(side * side), side), axis=1)[:, ::-1]
fig, axes = plt.subplots(1, 3, figsize=(11, 3.9))
color = plt.cm.tab20(forest.path[forest.edges()[:, 0]] % 20)
axes[0].add_collection(LineCollection(places[forest.edges()], colors=color, linewidths=2))
axes[0].add_collection(LineCollection(places[forest.removed], colors="k", linestyles=":"))
axes[0].set(xlim=(-1, side), ylim=(-1, side), aspect="equal", title="paths; dotted: cut cycles")
for ax, matrix, title in (
    (axes[1], A, "as given"),
    (axes[2], sp.csr_array(A)[forest.perm][:, forest.perm], "along the paths"),
):
    strong = abs(matrix) > 0.5
    ax.spy(matrix, color="0.8", markersize=1)
    ax.spy(strong, color="tab:red", markersize=1)
    ax.set(title=title, xticks=[], yticks=[])
fig.tight_layout()

# %%
# `tridiagonal_of` takes the values along the paths: three arrays, of the matrix as it is, signs
# and both directions included.

dl, d, du = matchwood.tridiagonal_of(A, forest)
T = sp.diags_array([dl[1:], d, du[:-1]], offsets=[-1, 0, 1])
B = sp.csr_array(A)[forest.perm][:, forest.perm]
print(f"{T.nnz} of {B.nnz} entries, {abs(T).sum() / abs(B).sum():.0%} of the absolute values")

# %%
# How long are the paths?  On a grid with random weights most are short.

grid = matchwood.generators.random_weights(matchwood.generators.grid((300, 300)), rng=1)
fig, ax = plt.subplots(figsize=(6.4, 3.4))
for name, matrix in {"grid, random weights": grid, "strong along a diagonal": A}.items():
    lengths = np.sort(np.diff(matchwood.linear_forest(matrix).offsets))[::-1]
    ax.loglog(np.arange(1, lengths.size + 1), lengths, label=name)
ax.set(xlabel="path, by length", ylabel="vertices")
ax.legend()
fig.tight_layout()

# %%
# Every answer can be checked against the definition.

forest.check(A)
plt.show()
