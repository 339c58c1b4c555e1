"""
A NetworkX program, faster
==========================

The program below knows nothing of matchwood: it asks NetworkX for the parts of a road map, for the
cheapest roads that keep them together, and for places of which no two are neighbours.  One line
hands those calls to matchwood, and the answers stay what they were.
"""

import math
import time

import matplotlib.pyplot as plt
import networkx as nx

from matchwood import networkx_backend

networkx_backend.register()  # not needed where matchwood is installed


def program(G):
    parts = sorted(nx.connected_components(G), key=len, reverse=True)
    tree = nx.minimum_spanning_tree(G)
    apart = nx.maximal_independent_set(G, seed=1)
    return parts, tree, apart


# %%
# A map: random points, joined when close; a road costs what it is long.

G = nx.random_geometric_graph(10_000, 0.0115, seed=3)
points = nx.get_node_attributes(G, "pos")
for u, v, data in G.edges(data=True):
    data["weight"] = math.dist(points[u], points[v])

seconds = {}
start = time.perf_counter()
theirs = program(G)
seconds["networkx"] = time.perf_counter() - start

# %%
# The one line, twice, since NetworkX files functions that return graphs under generators.  A call
# before that loads compiled code.

nx.config.backend_priority.algos = ["matchwood"]
nx.config.backend_priority.generators = ["matchwood"]
nx.config.warnings_to_ignore.add("cache")
program(G)
for kind in ("first", "again"):
    if kind == "first":
        G.__networkx_cache__.clear()
    start = time.perf_counter()
    ours = program(G)
    seconds[f"matchwood, {kind}"] = time.perf_counter() - start
nx.config.backend_priority.algos = []
nx.config.backend_priority.generators = []

assert ours[0] == theirs[0]
assert nx.utils.graphs_equal(ours[1], theirs[1])
print({name: f"{1e3 * taken:.1f} ms" for name, taken in seconds.items()})
print(len(theirs[2]), "places apart by NetworkX,", len(ours[2]), "by matchwood")
print(dict(networkx_backend.CALLS))

# %%
# The parts, the cheapest roads in each, and the places apart.

parts, tree, apart = ours
fig, axes = plt.subplots(1, 2, figsize=(11, 5.4))
draw = {"pos": points, "node_size": 0, "ax": axes[0]}
colors = [plt.cm.tab10(i % 10) if i < 10 else (0.8, 0.8, 0.8) for i in range(len(parts))]
place = {node: i for i, part in enumerate(parts) for node in part}
nx.draw_networkx_edges(tree, edge_color=[colors[place[u]] for u, _ in tree.edges], **draw)
axes[0].set_title("cheapest roads, the ten largest parts in colour")
nx.draw_networkx_edges(G, edge_color="0.7", **{**draw, "ax": axes[1]})
nx.draw_networkx_nodes(G, points, apart, node_size=9, node_color="tab:red", ax=axes[1])
axes[1].set_title("places of which no two are neighbours, in a corner")
for ax, side in zip(axes, (1.0, 0.3), strict=True):
    ax.set(aspect="equal", xlim=(0, side), ylim=(0, side))
fig.tight_layout()
plt.show()
