"""A component of at least half of the vertices is ordered by itself, on the GPU.

Then nobody has to find the components of the whole graph.  What is left is ordered as a graph of
its own: vertices keep their order in it, so that ties and the order of components stay as they are.
Vertices without neighbours are known anyway.  At last the three are merged by the smallest vertex
of each component.
"""
