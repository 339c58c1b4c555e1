"""Preconditioners that a tridiagonal solver applies, as linear operators.

    jacobi                        the diagonal
    tridiagonal                   the three middle diagonals, in the order as given
    algebraic_tridiagonal         the same along the paths of a linear forest: strong entries
    algebraic_block_tridiagonal   pairs of vertices, then paths of pairs: 2x2 blocks

Each returns a `scipy.sparse.linalg.LinearOperator`, or CuPy's where the engine is a GPU: ready
for ``M=`` of their solvers.  Besides ``matvec``, ``matmat``, ``rmatvec`` and ``.H`` it has

    coverage      fraction of the weight off the diagonal that it contains
    definite      True or False: is it positive definite, as CG needs it?  None: not symmetric
    seconds       time of its setup by phase
    name

On the CPU they can be pickled and copied.

Read on in diagonal.py, band.py, paths.py, blocks/ (one for each, in this order).  operator.py has
the class that all return, definite/ makes a preconditioner positive definite for CG, check.py says
what holds for each.
"""

from matchwood.preconditioners.band import tridiagonal
from matchwood.preconditioners.blocks import algebraic_block_tridiagonal
from matchwood.preconditioners.diagonal import jacobi
from matchwood.preconditioners.paths import algebraic_tridiagonal

__all__ = ["algebraic_block_tridiagonal", "algebraic_tridiagonal", "jacobi", "tridiagonal"]
