"""
Elasticity: rigid body modes for the multilevel preconditioner
==============================================================

An elastic beam that is clamped at its left end bends under its own weight.  Errors that no smoother
reduces are those in which parts of the beam move as rigid bodies: two translations and a rotation.
With these as ``near_nullspace``, aggregates of nodes keep them.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import matchwood

# %%
# Bilinear elements on squares, from integrals along the axes; Lame's numbers are 1 and 1.

columns, rows = 121, 21


def along(n):
    """Integrals of f g, f' g' and f g' for the hat functions of n points with distance 1."""
    ends = np.r_[0.5, np.ones(n - 2), 0.5]
    one, jump = np.ones(n - 1), np.r_[-0.5, np.zeros(n - 2), 0.5]
    bands = (one / 6, 2 / 3 * ends, one / 6), (-one, 2 * ends, -one), (-one / 2, jump, one / 2)
    return [sp.diags_array(band, offsets=(-1, 0, 1)) for band in bands]


(Mx, Kx, Cx), (My, Ky, Cy) = along(columns), along(rows)
xx, yy, xy = sp.kron(Kx, My), sp.kron(Mx, Ky), sp.kron(Cx.T, Cy)
blocks = [[3 * xx + yy, xy + xy.T], [xy + xy.T, xx + 3 * yy]]
n = columns * rows
order = np.arange(2 * n).reshape(2, n).T.ravel()  # both displacements of a node side by side
free = np.arange(2 * rows, 2 * n)  # the first column of nodes is held
A = sp.csr_array(sp.block_array(blocks, format="csr"))[order][:, order][free][:, free]

# %%
# Rigid body modes: along x, along y, and a rotation.

x, y = (axis.ravel() for axis in np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij"))
modes = np.zeros((2 * n, 3))
modes[0::2, 0] = 1
modes[1::2, 1] = 1
modes[0::2, 2], modes[1::2, 2] = -(y - y.mean()), x - x.mean()
B = modes[free]

weight = np.zeros(len(free))
weight[1::2] = -1e-6

# %%
# Iterations with and without them, and along a linear forest.

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
found = matchwood.solve(A, weight, near_nullspace=B)
left.semilogy(found.residuals, label=f"multilevel, rigid body modes: {found.iterations}")
for name in ("multilevel", "algebraic_tridiagonal"):
    other = matchwood.solve(A, weight, preconditioner=name)
    left.semilogy(other.residuals, label=f"{name}, {other.method}: {other.iterations}")
left.set(xlabel="iterations", ylabel="relative residual", xlim=(0, 400))
left.legend(fontsize=8)

moved = np.zeros(2 * n)
moved[free] = found.x
stretch = 0.3 * rows / abs(moved).max()
u, v = x + stretch * moved[0::2], y + stretch * moved[1::2]
for axis in (0, 1):
    shape = (columns, rows)
    lines = (part.reshape(shape) if axis == 0 else part.reshape(shape).T for part in (u, v))
    xs, ys = lines
    right.plot(xs[:, ::5], ys[:, ::5], color=f"C{axis}", lw=0.6)
right.set_aspect("equal")
right.set_title("the beam, its displacement enlarged", fontsize=10)
fig.tight_layout()

# %%
# On each level, an aggregate of nodes becomes a node of three unknowns.

for level in found.preconditioner.levels:
    print(f"{level.rows:6} rows {level.entries:7} entries  {level.smoother}")
plt.show()
