"""Forward-backward search: a pivot's component is what it reaches and is reached from.

The three sets that remain (reached only, reaching only, neither) are crossed by no component, so
they are searched independently.  On the CPU each set is a task of one thread (cpu.py); on the GPU
all sets are searched in the same passes, one pivot each (propagation/gpu.cu, `single`).

L. K. Fleischer, B. Hendrickson, A. Pinar. On identifying strongly connected components in parallel.
IPDPS 2000 workshops.
"""
