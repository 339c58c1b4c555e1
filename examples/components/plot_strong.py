"""
Strong components: where can one go and come back?
==================================================

Streets between random places, and a growing share of them made one-way.  The strong components
are the parts of the town within which one can drive from everywhere to everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection

import matchwood

# %%
# A street is a pair of arcs; a one-way street is one of the two, drawn at random.

n = 1500
streets = matchwood.generators.random_geometric(n, degree=6.5, rng=2)
points = matchwood.generators.random_points(n, rng=2)
upper = sp.triu(streets, 1).tocoo()
draw = np.random.default_rng(3).random(upper.nnz)


def town(one_way):
    there, back = draw > one_way / 2, draw < 1 - one_way / 2
    rows = np.append(upper.row[there], upper.col[back])
    cols = np.append(upper.col[there], upper.row[back])
    return sp.csr_array((np.ones(rows.size), (rows, cols)), shape=streets.shape)


# %%
# Even with every street one-way, a large part of the town still hangs together.

fig, axes = plt.subplots(1, 3, figsize=(11, 4.1))
palette = np.vstack((plt.cm.Dark2.colors, plt.cm.Set1.colors[:1], (0.82, 0.82, 0.82)))
for ax, one_way in zip(axes, (0.0, 0.8, 1.0), strict=True):
    count, labels = matchwood.strongly_connected_components(town(one_way))
    sizes = np.bincount(labels)
    rank = np.empty(count, dtype=int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)  # 0 is the largest
    part = np.where(rank < 9, rank, 9)[labels]
    inside = labels[upper.row] == labels[upper.col]
    colors = palette[np.where(inside, part[upper.row], 9)]
    segments = np.stack((points[upper.row], points[upper.col]), axis=1)
    ax.add_collection(LineCollection(segments, colors=colors, linewidths=0.9))
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{one_way:.0%} one-way: {count} components")
fig.tight_layout()

# %%
# The condensation has a vertex for each component and no cycles.  Its matrix, in topological
# order, is upper triangular.

A = town(1.0)
graph, labels = matchwood.condensation(A)
arcs = graph.tocoo()
fig, ax = plt.subplots(figsize=(4.4, 4.4))
ax.plot(arcs.col, arcs.row, ".", markersize=2)
ax.set(aspect="equal", title=f"condensation: {graph.shape[0]} components")
ax.invert_yaxis()
fig.tight_layout()

# %%
# Every answer can be checked against the definition.

matchwood.check.check_condensation(A, (graph, labels))
plt.show()
