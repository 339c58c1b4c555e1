"""
Communities: who belongs together?
==================================

Random points, joined when they are close.  `louvain` finds groups that are tied to each other more
than to the rest, and finds the same ones at every run.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# The resolution decides how large communities are.

n = 2000
A = matchwood.generators.random_geometric(n, degree=10.0, rng=3)
points = matchwood.generators.random_points(n, rng=3)
u, v = A.nonzero()
u, v = u[u < v], v[u < v]  # each edge once
segments = np.stack((points[u], points[v]), axis=1)

fig, axes = plt.subplots(1, 3, figsize=(11, 4.1))
for ax, resolution in zip(axes, (0.2, 1.0, 5.0), strict=True):
    found = matchwood.louvain(A, resolution=resolution)
    palette = np.vstack((plt.cm.tab20.colors, (0.85, 0.85, 0.85)))
    colors = np.where(found.labels[u] == found.labels[v], found.labels[u] % 20, 20)
    ax.add_collection(LineCollection(segments, colors=palette[colors], linewidths=0.9))
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"resolution {resolution}: {found.count} communities")
fig.tight_layout()

# %%
# Three functions beside each other.

for function in (matchwood.louvain, matchwood.leiden, matchwood.label_propagation):
    found = function(A)
    print(f"{function.__name__:18} {found.count:4} communities, modularity {found.modularity:.3f}")

# %%
# Every answer can be checked: communities are connected, and the modularity is as stated.

matchwood.check.check_communities(A, matchwood.leiden(A))
plt.show()
