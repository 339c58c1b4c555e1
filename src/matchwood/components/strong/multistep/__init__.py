"""Multistep: trim, find the largest component, then find many others at once by colours.

A vertex's colour is the largest vertex that reaches it.  The vertices of one colour from which the
vertex of that number can be reached are its component.  What is left in the end is done by
Tarjan's method.  On the GPU, propagation/ takes the place of colours.

G. M. Slota, S. Rajamanickam, K. Madduri. BFS and coloring-based parallel algorithms for strongly
connected components and related problems. IPDPS 2014.
"""
