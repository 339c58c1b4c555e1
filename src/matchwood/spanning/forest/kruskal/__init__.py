"""Kruskal's method, and filter-Kruskal: edges in sorted order join the sets of their ends.

"kruskal" sorts all edges.  "filter_kruskal" sorts the lightest ones, joins along them, and drops
the edges within one set before it goes on with the next ones; few edges are ever sorted.

J. B. Kruskal. On the shortest spanning subtree of a graph and the traveling salesman problem.
Proc. AMS 7(1), 1956.
V. Osipov, P. Sanders, J. Singler. The filter-Kruskal minimum spanning tree algorithm. ALENEX 2009.
"""
