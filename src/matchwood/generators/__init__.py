"""Graphs and matrices for tests and benchmarks, made from a seed.

=====================  =============================================================
`rmat`                 skewed degrees, small diameter: Graph500, social networks
`erdos_renyi`          n vertices, exactly m random edges
`dense_random`         each possible edge with the same probability
`random_geometric`     points of the unit square or cube that lie near each other
`delaunay`             triangulation of random points: a planar mesh
`random_points`        those points
`stencil`              any 1-D, 2-D or 3-D stencil on a grid
`grid`, `mesh`         5-/7-point and 9-/27-point neighbours on a grid
`aniso`                three anisotropic problems for preconditioners
`path`, `cycle`,       named graphs
`star`, `complete`,
`mycielskian`
`random_weights`       random weights for the edges of any of them
`packets`              sources and destinations of network packets
=====================  =============================================================

Each is a `scipy.sparse.csr_array` with sorted rows and no duplicates; graphs have an empty
diagonal, and are symmetric unless asked to be directed.  ``engine="gpu"`` makes the same graph
on the GPU and returns a `cupyx.scipy.sparse.csr_matrix`.

The same arguments give the same graph, in every bit, on every engine and at any number of
threads: see `matchwood.generators.streams` for how the random numbers are made.

>>> from matchwood import generators
>>> generators.rmat(8, rng=3).nnz == generators.rmat(8, rng=3, threads=2).nnz
True
"""

from __future__ import annotations

from matchwood.generators.families import complete, cycle, mycielskian, path, star
from matchwood.generators.geometric import delaunay, random_geometric, random_points
from matchwood.generators.hashed import dense_random, erdos_renyi, rmat
from matchwood.generators.packets import packets
from matchwood.generators.stencils import aniso, grid, mesh, stencil
from matchwood.generators.streams import random_weights

__all__ = [
    "aniso",
    "complete",
    "cycle",
    "delaunay",
    "dense_random",
    "erdos_renyi",
    "grid",
    "mesh",
    "mycielskian",
    "packets",
    "path",
    "random_geometric",
    "random_points",
    "random_weights",
    "rmat",
    "star",
    "stencil",
]
