"""The leveled method: all threads work on one breadth-first level, then wait at a barrier.

The vertices of a level claim their free neighbours.  Where several claim one neighbour, the
earliest-placed of them has it.  Then each vertex sorts its children by (degree, vertex), and a
prefix sum of the counts gives their places.  Narrow levels are left to one thread, or on the GPU to
one block.

K. I. Karantasis, A. Lenharth, D. Nguyen, M. J. Garzarán, K. Pingali. Parallelization of reordering
algorithms for bandwidth and wavefront reduction. SC 2014. doi:10.1109/SC.2014.80
"""
