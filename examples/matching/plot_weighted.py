"""
Weighted matching, and how near to the best it is
=================================================

The greedy matching of a triangulation, its distance from the best, and the coarser graphs that
merging matched vertices gives.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# Short edges are heavy.  Every method that is greedy finds the same edges.

n = 300
points = matchwood.generators.random_points(n, rng=5)
A = matchwood.generators.delaunay(n, rng=5)
u, v = A.nonzero()
A.data = 1 / np.linalg.norm(points[u] - points[v], axis=1)
found = matchwood.weighted_matching(A)
for method in ("greedy", "dominant", "suitor"):
    assert (matchwood.weighted_matching(A, method=method).mate == found.mate).all()
found.check(A)
print(f"weight {found.weight:.0f}, proved to be at least {found.quality:.1%} of the best")

# %%
# Short exchanges make it heavier; a matching with as many edges as there can be is another one.

heavier = matchwood.weighted_matching(A, method="augmented")
heavier.check(A)
largest = matchwood.maximum_matching(A)
print(f"augmented: {heavier.weight / found.weight - 1:.1%} heavier, {heavier.cardinality} edges")
print(f"greedy {found.cardinality} edges, at most {largest.cardinality}")

# %%
# Four levels of merging.  A line is as wide as the weight that it carries.

fig, axes = plt.subplots(1, 4, figsize=(13, 3.4))
matrix, place, size = A, points, np.ones(n)
levels = iter(matchwood.coarsening_hierarchy(A, until=20))
for ax in axes:
    u, v = matrix.nonzero()
    width = 0.3 + 2.5 * matrix.data / matrix.data.max()
    ax.add_collection(
        LineCollection(np.stack((place[u], place[v]), axis=1), colors="tab:blue", linewidths=width)
    )
    ax.scatter(*place.T, s=3 * size, color="tab:orange", zorder=2)
    ax.set(title=f"{len(place)} vertices", aspect="equal", xticks=[], yticks=[])
    level = next(levels)
    inside = np.stack([np.bincount(level.map, size * place[:, k]) for k in range(2)], axis=1)
    place = inside / level.vertex_weights[:, None]
    matrix, size = level.matrix, np.bincount(level.map, size)
fig.tight_layout()
plt.show()
