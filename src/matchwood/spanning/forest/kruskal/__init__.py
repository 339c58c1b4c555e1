"""Kruskal's method, and filter-Kruskal: edges in sorted order join the sets of their ends.

"kruskal" sorts all edges.  "filter_kruskal" sorts the lightest ones, joins along them, and drops
the edges within one set before it goes on with the next ones; few edges are ever sorted.
The papers: [5] and [6] in ../__init__.py.
"""
