"""
Preconditioners from linear forests
===================================

A tridiagonal preconditioner contains what lies next to the diagonal.  A linear forest puts the
strongest entries there, wherever they were.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import matchwood
from matchwood import preconditioners

# %%
# A diffusion problem whose strong direction runs along the anti-diagonals of its grid.

A = matchwood.generators.aniso(2, (60, 60))
n = A.shape[0]
true = np.sin(16 * np.pi * np.arange(n) / n)
b = A @ true

makers = {
    "Jacobi": preconditioners.jacobi,
    "tridiagonal, as numbered": preconditioners.tridiagonal,
    "tridiagonal, along a forest": preconditioners.algebraic_tridiagonal,
    "2x2 blocks along a forest": preconditioners.algebraic_block_tridiagonal,
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for name, make in makers.items():
    M = make(A)
    found = matchwood.solve(A, b, preconditioner=M, true_solution=true)
    label = f"{name}: {M.coverage:.0%} of the weight"
    left.semilogy(found.residuals, label=label)
    right.semilogy(found.errors, label=label)
left.set(xlabel="iterations of BiCGStab", ylabel="relative residual")
right.set(xlabel="iterations of BiCGStab", ylabel="forward relative error")
left.legend(fontsize=7)
fig.tight_layout()

# %%
# What the forest sees: the matrix in its order has the strong entries beside the diagonal.

M = preconditioners.algebraic_tridiagonal(A)
perm = M.forest.perm
off = abs(A - sp.diags_array(A.diagonal()))
strong = off >= 0.9 * off.max()
fig, axes = plt.subplots(1, 2, figsize=(9, 4.4))
for ax, matrix, title in (
    (axes[0], strong, "strongest entries, as numbered"),
    (axes[1], strong[perm][:, perm], "in the order of the forest"),
):
    ax.spy(matrix[:240, :240], markersize=1.5)
    ax.set_title(title, fontsize=10)
fig.tight_layout()
plt.show()
