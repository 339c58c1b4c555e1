"""
Solving with a multilevel preconditioner
========================================

Rows that are strongly coupled are merged, level by level.  The number of iterations then hardly
depends on the size of the grid, nor on how strong one direction is.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import matchwood
from matchwood import preconditioners

# %%
# A diffusion problem whose strong direction runs along the anti-diagonals of its grid, on two
# grids.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, side in zip(axes, (40, 120), strict=True):
    A = matchwood.generators.aniso(2, (side, side))
    b = np.random.default_rng(0).standard_normal(side * side)
    for name in ("jacobi", "algebraic_tridiagonal", "algebraic_block_tridiagonal", "multilevel"):
        found = matchwood.solve(A, b, preconditioner=name)
        ax.semilogy(found.residuals, label=f"{name}, {found.method}: {found.iterations}")
    cycle = preconditioners.multilevel(A, cycle="V")
    found = matchwood.solve(A, b, preconditioner=cycle, method="cg")
    ax.semilogy(found.residuals, label=f"multilevel, V-cycles, cg: {found.iterations}")
    ax.set(xlabel="iterations", title=f"{side} x {side}")
    ax.legend(fontsize=7)
axes[0].set(ylabel="relative residual")
fig.tight_layout()

# %%
# The levels: rows and entries of each.

M = preconditioners.multilevel(A)
for level in M.levels:
    print(f"{level.rows:6} rows {level.entries:6} entries  {level.smoother}")

# %%
# The potential of a road network: streets of a town, some of them closed, with a current that
# enters at one crossing and leaves at another.

side = 60
grid = sp.csr_array(matchwood.generators.grid((side, side)))
roads = sp.triu(grid).tocoo()
rng = np.random.default_rng(1)
keep = rng.random(roads.nnz) < 0.75
ends = roads.row[keep], roads.col[keep]
town = sp.csr_array((rng.uniform(0.2, 1, keep.sum()), ends), shape=grid.shape)
town = town + town.T
b = np.zeros(side * side)
main = matchwood.connected_components(town).labels
largest = np.flatnonzero(main == np.bincount(main).argmax())
b[largest[0]], b[largest[-1]] = 1, -1
found = matchwood.solve_laplacian(town, b)
picture = np.full(side * side, np.nan)
picture[largest] = found.x[largest]
fig, ax = plt.subplots(figsize=(5, 4.4))
drawn = ax.imshow(picture.reshape(side, side), cmap="viridis")
fig.colorbar(drawn, label="potential")
resistance = found.x[largest[0]] - found.x[largest[-1]]
ax.set_title(f"{found.iterations} iterations, resistance {resistance:.2f}", fontsize=10)
plt.show()
