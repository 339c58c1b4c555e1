"""
Connected components: what hangs together?
==========================================

Random points, joined when they are closer than a radius.  While the radius grows, small
components merge, and then, within a narrow range, almost everything becomes one.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# How many neighbours a vertex has on average decides.  We look at three radii.

n = 2500
fig, axes = plt.subplots(1, 3, figsize=(11, 4.1))
for ax, neighbours in zip(axes, (3.0, 4.2, 5.5), strict=True):
    A = matchwood.generators.random_geometric(n, degree=neighbours, rng=2)
    points = matchwood.generators.random_points(n, rng=2)
    count, labels = matchwood.connected_components(A)

    sizes = np.bincount(labels)
    rank = np.empty(count, dtype=int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)  # 0 is the largest
    colors = np.where(rank < 9, rank, 9)[labels]

    u, v = A.nonzero()
    u, v = u[u < v], v[u < v]  # each edge once
    segments = np.stack((points[u], points[v]), axis=1)
    palette = np.vstack((plt.cm.Dark2.colors, plt.cm.Set1.colors[:1], (0.8, 0.8, 0.8)))
    ax.add_collection(LineCollection(segments, colors=palette[colors[u]], linewidths=0.9))
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{neighbours} neighbours each: {count} components")
fig.tight_layout()

# %%
# The share of the largest component against the number of neighbours shows the narrow range.

neighbours = np.linspace(0.5, 8, 26)
share = []
for each in neighbours:
    A = matchwood.generators.random_geometric(20_000, degree=each, rng=4)
    found = matchwood.connected_components(A)
    share.append(np.bincount(found.labels).max() / 20_000)

fig, ax = plt.subplots(figsize=(6.4, 3.6))
ax.plot(neighbours, share, "o-", markersize=4)
ax.set(xlabel="neighbours of a vertex, on average", ylabel="share of the largest component")
fig.tight_layout()

# %%
# Every answer can be checked against the definition.

matchwood.check.check_connected_components(A, found.labels)
plt.show()
