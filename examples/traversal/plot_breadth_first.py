"""
Breadth-first search: how far is it?
====================================

The level of a vertex is the number of edges on a shortest path from a source.  On a triangulation
the levels form rings; from several sources at once they form cells, since each vertex belongs to
the nearest source.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# A graph on points, to see what happens: 3000 random points, triangulated.

A = matchwood.generators.delaunay(3000, rng=3)
points = matchwood.generators.random_points(3000, rng=3)  # the same seed, the same points
centre = int(np.argmin(((points - 0.5) ** 2).sum(axis=1)))
found = matchwood.bfs(A, centre)
print(f"{found.level.max()} levels, {np.count_nonzero(found.level >= 0)} vertices reached")

# %%
# The parent of a vertex is its neighbour of the level before with the smallest number, so the tree
# is the same on every engine.  Following parents leads to the source along a shortest path.

children = np.flatnonzero(found.level > 0)
tree = np.stack((points[children], points[found.parent[children]]), axis=1)

fig, ax = plt.subplots(figsize=(7, 6.4))
lines = LineCollection(tree, array=found.level[children], cmap="viridis", linewidths=1.1)
ax.add_collection(lines)
ax.plot(*points[centre], "o", color="tab:red", markersize=9)
ax.set(aspect="equal", xticks=[], yticks=[], title="the tree of shortest paths")
fig.colorbar(lines, label="level", shrink=0.8)
fig.tight_layout()

# %%
# From several sources at once: the level is the distance to the nearest one.  The tree tells which
# one that is, by following parents to the root.

targets = np.random.default_rng(1).random((7, 2))
sources = [int(np.argmin(((points - target) ** 2).sum(axis=1))) for target in targets]
cells = matchwood.bfs(A, sources)
root = cells.parent.copy()
for _ in range(int(cells.level.max())):
    root = root[root]

fig, ax = plt.subplots(figsize=(6.4, 6.4))
owner = np.searchsorted(np.sort(sources), root)
ax.scatter(*points.T, c=owner, s=9, cmap="Set2")
ax.plot(*points[sources].T, "o", color="black", markersize=7)
ax.set(aspect="equal", xticks=[], yticks=[], title="which source is nearest")
fig.tight_layout()

# %%
# Was that right?  The check looks at the definition, not at another search.

matchwood.check.check_bfs(A, sources, cells)
plt.show()
