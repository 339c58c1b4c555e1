"""
PageRank: where a random surfer spends the time
===============================================

A surfer follows random arcs, and now and then jumps anywhere.  Vertices where it is often are those
that many others point to, above all others that it comes to often itself.
"""

import matplotlib.pyplot as plt
import numpy as np

import matchwood

# %%
# Random points, joined when close; every edge is an arc towards the middle.

n = 1500
points = matchwood.generators.random_points(n, rng=3)
A = matchwood.generators.random_geometric(n, degree=8, rng=3)
coo = A.tocoo()
far = np.hypot(*(points - 0.5).T)
inward = far[coo.row] > far[coo.col]
arcs = np.stack((coo.row[inward], coo.col[inward]), axis=1)
found = matchwood.pagerank((n, arcs))
print(f"{found.iterations} iterations, error {found.error:.1e}")

fig, ax = plt.subplots(figsize=(5.4, 4.6))
ax.scatter(*points.T, s=2000 * found.scores, c=np.log10(found.scores))
ax.set(aspect="equal", xticks=[], yticks=[], title="size: score")
fig.tight_layout()

# %%
# The jumps may lead somewhere else: to the lower left corner, say.

corner = (points < 0.2).all(axis=1).astype(float)
own = matchwood.pagerank((n, arcs), personalization=corner)

fig, ax = plt.subplots(figsize=(5.4, 4.6))
ax.scatter(*points.T, s=2000 * own.scores, c=np.log10(own.scores + 1e-9))
ax.set(aspect="equal", xticks=[], yticks=[], title="jumps to the corner")
fig.tight_layout()
