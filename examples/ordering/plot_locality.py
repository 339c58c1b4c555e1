"""
Orders that keep neighbours together
====================================

Code that goes from vertex to neighbour reads memory at the places of the neighbours.  Where those
lie close together, a cache line serves several of them.
"""

import matplotlib.pyplot as plt

import matchwood

# %%
# A triangulation whose vertices are numbered at random, in five orders.

n = 3000
A = matchwood.generators.delaunay(n, rng=5)
G = matchwood.graph(A)
points = matchwood.generators.random_points(n, rng=5)
orders = {
    "as it came": list(range(n)),
    "rabbit": matchwood.rabbit_order(G),
    "layered label propagation": matchwood.layered_label_propagation_order(G),
    "shingle": matchwood.shingle_order(G),
    "reverse Cuthill-McKee": matchwood.reverse_cuthill_mckee(G),
    "degree": matchwood.degree_order(G),
}
gaps = G.nnz - n  # jumps from one neighbour of a vertex to the next

fig, axes = plt.subplots(2, 3, figsize=(10.5, 7.4))
for ax, (name, perm) in zip(axes.flat, orders.items(), strict=True):
    bits = matchwood.log_gap(G, perm) / gaps
    ax.spy(matchwood.permute(A, perm), markersize=0.4)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"{name}\n{bits:.2f} bits a gap", fontsize=9)
fig.tight_layout()

# %%
# Where the vertices come: communities within communities, or a wave.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6))
for ax, name in zip(axes, ("rabbit", "reverse Cuthill-McKee"), strict=True):
    place = [0] * n
    for new, old in enumerate(orders[name]):
        place[old] = new
    ax.scatter(*points.T, c=place, s=7)
    ax.set(aspect="equal", xticks=[], yticks=[], title=name)
fig.tight_layout()

# %%
# Refinement swaps vertices of small degree with their neighbours as long as gaps get shorter.

fractions = (0.01, 0.05, 0.2, 0.5, 1.0)
fig, ax = plt.subplots(figsize=(5.4, 3.6))
for name in ("rabbit", "shingle", "as it came"):
    found = [matchwood.refine_order(G, orders[name], fraction=part) for part in fractions]
    ax.plot(fractions, [100 * (1 - f.after / f.before) for f in found], marker=".", label=name)
ax.set(xlabel="part of the vertices that are looked at", ylabel="log gap lowered by, percent")
ax.set_xscale("log")
ax.legend()
fig.tight_layout()
