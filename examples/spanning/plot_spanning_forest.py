"""
Minimum spanning forests: the cheapest way to join everything
=============================================================

Points in the plane are to be joined by lines, as short in all as possible.  The lines of the
shortest network are always among those of the Delaunay triangulation.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# The triangulation, with lengths as weights, and its spanning tree.

n = 900
points = matchwood.generators.random_points(n, rng=5)
A = matchwood.generators.delaunay(n, rng=5)
u = np.repeat(np.arange(n), np.diff(A.indptr))
A.data = np.linalg.norm(points[u] - points[A.indices], axis=1)
tree = matchwood.minimum_spanning_forest(A)
matchwood.check.check_spanning_forest(A, tree)

fig, ax = plt.subplots(figsize=(6.4, 6.4))
every = np.stack((points[u], points[A.indices]), axis=1)
ax.add_collection(LineCollection(every, colors="0.85", linewidths=0.5))
ax.add_collection(LineCollection(points[tree.edges], colors="tab:blue", linewidths=1.6))
ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
ax.set_title(f"{tree.edges.shape[0]} edges, {tree.total:.1f} long in all")
fig.tight_layout()

# %%
# Without its longest edges the tree falls into groups of points that are close to each other: this
# is single-linkage clustering.  Three clouds of points:

rng = np.random.default_rng(1)
clouds = np.concatenate([rng.normal(c, 0.06, (150, 2)) for c in ((0, 0), (0.6, 0.1), (0.3, 0.6))])
apart = np.linalg.norm(clouds[:, None] - clouds[None], axis=2)
tree = matchwood.minimum_spanning_forest(apart)
short = tree.edges[tree.weights < np.sort(tree.weights)[-2]]  # without the two longest
count, label = matchwood.connected_components((len(clouds), short))

fig, ax = plt.subplots(figsize=(5.2, 5.2))
ax.add_collection(LineCollection(clouds[short], colors="0.6", linewidths=0.8))
ax.scatter(*clouds.T, c=label, cmap="Dark2", s=9, zorder=2)
ax.set(aspect="equal", xticks=[], yticks=[], title=f"{count} clusters")
fig.tight_layout()

# %%
# The spanning tree of a grid with random weights is a maze: one way between any two places.

side = 40
grid = matchwood.generators.random_weights(matchwood.generators.grid((side, side)), rng=2)
maze = matchwood.minimum_spanning_forest(grid)
places = np.stack(np.divmod(np.arange(side * side), side), axis=1)

fig, ax = plt.subplots(figsize=(6, 6), facecolor="0.15")
walls = LineCollection(places[maze.edges], colors="w", linewidths=6, capstyle="projecting")
ax.add_collection(walls)
ax.set(xlim=(-1, side), ylim=(-1, side), aspect="equal")
ax.axis("off")
plt.show()
