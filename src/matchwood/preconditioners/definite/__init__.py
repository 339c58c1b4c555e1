"""Is a tridiagonal preconditioner positive definite, and how can it be made so?

A positive definite matrix need not stay definite when entries are dropped: along its forest
bcsstk10 has 40 negative eigenvalues.  CG must not be used with such a preconditioner.

cpu.py computes the pivots along each path.  A path may be as long as the matrix, and pivots depend
on each other.  So on the GPU the coefficients are copied to the host for this, but only where
`definite` is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

System = tuple[Any, Any, Any]


def is_definite(G: Any, system: System, threads: int | None) -> bool | None:
    """Whether the system is positive definite; None where the matrix is not symmetric."""
    from matchwood.preconditioners.definite import cpu

    if not G.has_symmetric_values:
        return None
    dl, d, du = (engines.moved(array, "cpu") for array in system)
    return cpu.examine(dl, d, du, change=False, threads=threads)[0] == 0


def made_definite(G: Any, system: System, caller: str, threads: int | None) -> System:
    """The system itself where it is positive definite, else a copy made so, as in cpu.py."""
    from matchwood.preconditioners.definite import cpu

    if not G.has_symmetric_values:
        raise ValueError(f"{caller}: definite=True needs a symmetric matrix")
    dl, d, du = (np.array(engines.moved(array, "cpu")) for array in system)
    indefinite, not_positive = cpu.examine(dl, d, du, change=True, threads=threads)
    if not_positive:
        raise ValueError(
            f"{caller}: definite=True needs a positive definite matrix, but the diagonal of this "
            "one, or a 2x2 block on it, is not positive"
        )
    if not indefinite:
        return system
    home = engines.location(system[1])
    return engines.moved(dl, home), system[1], engines.moved(du, home)
