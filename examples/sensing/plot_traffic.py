"""
Network traffic: few hosts send most packets
============================================

A capture becomes windows of packets, each window a matrix of who sent how many packets to whom.
Here the packets are made from a seed; a file name in their place works the same way.
"""

import secrets

import matplotlib.pyplot as plt
import numpy as np

import matchwood

# %%
# A million packets between 50,000 hosts, anonymized before anything is counted.

src, dst = matchwood.generators.packets(2**20, "zipf", hosts=50_000, rng=1)
key = secrets.token_bytes(32)
found = matchwood.sense((src, dst), window=2**15, anonymize="permutation", key=key)
for name, value in found.statistics.nine().items():
    print(f"{name:26}{value:12,}")

# %%
# The quantities of the windows hardly change: this traffic does not know the time.

fig, ax = plt.subplots(figsize=(6, 3.4))
for name in ("unique_links", "unique_sources", "unique_destinations"):
    ax.plot(getattr(found.windows, name), label=name.replace("_", " "))
ax.set(xlabel="window", ylim=(0, None))
ax.legend()
fig.tight_layout()

# %%
# How many sources sent how many packets, and the curve 1 / (d + delta)^alpha that fits best.

one = found.histograms.source_packets
fit = one.fit()
grid = np.unique(np.logspace(0, np.log10(fit.largest), 100).round())

fig, ax = plt.subplots(figsize=(6, 3.8))
ax.loglog(one.values, one.counts / one.counts.sum(), ".", markersize=3, label="sources")
ax.loglog(grid, fit.probability(grid), label=f"alpha {fit.alpha:.2f}, delta {fit.delta:.2f}")
ax.set(xlabel="packets of a source", ylabel="share")
ax.legend()
fig.tight_layout()

# %%
# A traffic matrix is a graph: who is connected with whom, directions ignored?

graph, addresses = found.matrix.graph()
parts = matchwood.connected_components(graph)
print(f"{addresses.size:,} addresses in {parts.count:,} connected components")
