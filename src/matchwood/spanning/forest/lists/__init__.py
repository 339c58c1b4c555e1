"""A step of Boruvka's and of Kruskal's method on the GPU: rounds on a list of edges.

Every tree keeps the first edge that it is offered.  Trees are joined along these edges.  Edges
within one tree leave the list, and the others are offered again, until the list is empty.
"""
