"""Is this CSR matrix a simple symmetric graph?"""

from __future__ import annotations

from typing import Any

from matchwood.errors import CheckFailed
from matchwood.primitives.assemble.check import check_canonical
from matchwood.primitives.inspect import symmetry, values


def check_symmetric(indptr: Any, indices: Any, data: Any) -> None:
    """Raise `CheckFailed` unless rows are ascending, loops absent, pattern and values symmetric."""
    n = len(indptr) - 1
    check_canonical(indptr, indices, n)
    facts = symmetry(indptr, indices)
    if facts.loops:
        raise CheckFailed(f"graph: {facts.loops} entries on the diagonal")
    if not facts.symmetric:
        raise CheckFailed("graph: the pattern is not symmetric")
    if data is not None and not values(indptr, indices, data).symmetric:
        raise CheckFailed("graph: the weights are not symmetric")
