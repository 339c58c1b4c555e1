"""
Generators: graphs of different kinds
=====================================

Every generator makes the same graph from the same seed, on CPU and GPU, at any number of threads.
Seen from afar, the matrices and the numbers of neighbours tell the kinds apart.
"""

import matplotlib.pyplot as plt
import numpy as np

import matchwood
from matchwood import generators

# %%
# Six kinds, a few thousand vertices each.

graphs = {
    "rmat": generators.rmat(12, rng=1),
    "erdos_renyi": generators.erdos_renyi(4000, 20_000, rng=1),
    "grid": generators.grid((64, 64)),
    "delaunay": generators.delaunay(4000, rng=1),
    "random_geometric": generators.random_geometric(4000, 0.025, rng=1),
    "mycielskian": generators.mycielskian(11),
}

# %%
# Above where the entries are, below how many vertices have how many neighbours.

fig, axes = plt.subplots(2, 6, figsize=(14, 4.6), height_ratios=(1.25, 1), layout="constrained")
for (name, A), top, bottom in zip(graphs.items(), axes[0], axes[1], strict=True):
    cells = 64
    rows, columns = A.nonzero()
    density, _, _ = np.histogram2d(rows, columns, bins=cells, range=[[0, A.shape[0]]] * 2)
    top.imshow(np.log1p(density), cmap="Blues")
    top.set(xticks=[], yticks=[], title=name)

    degree = matchwood.graph(A).degrees
    count = np.bincount(degree)
    present = np.flatnonzero(count)
    draw = bottom.loglog if degree.max() > 30 else bottom.semilogy
    draw(present, count[present], "o", markersize=3)
    bottom.set(xlabel="neighbours")
axes[1, 0].set_ylabel("vertices")
plt.show()
