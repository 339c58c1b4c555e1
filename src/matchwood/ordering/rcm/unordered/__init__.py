"""The unordered method: a breadth-first search finds the levels, then each has its own thread.

The sizes of the levels tell where each begins in the order.  The thread of a level reads the
vertices of that level as soon as they are placed.  It places their children, which are the next
level, and which the next thread reads.  So the threads form a pipeline.

K. I. Karantasis, A. Lenharth, D. Nguyen, M. J. Garzarán, K. Pingali. Parallelization of reordering
algorithms for bandwidth and wavefront reduction. SC 2014. doi:10.1109/SC.2014.80
"""
