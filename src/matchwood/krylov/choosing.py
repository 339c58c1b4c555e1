"""Which preconditioner: the one that was asked for, or several in turn.

`auto` begins with the one that contains most weight.  It goes on to the next one if a
preconditioner cannot be made, if the method breaks down with it, or if the method ends with no
smaller residual than it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from matchwood import preconditioners as ready
from matchwood.arguments import one_of
from matchwood.factors import coverage_of_order

PRECONDITIONERS = {
    "jacobi": ready.jacobi,
    "tridiagonal": ready.tridiagonal,
    "algebraic_tridiagonal": ready.algebraic_tridiagonal,
    "algebraic_block_tridiagonal": ready.algebraic_block_tridiagonal,
}

SYMMETRIC = ("cg", "minres")  # methods for symmetric matrices, and definite preconditioners
Make = Callable[[], Any]


def candidates(
    G: Any, given: Any, method: str, threads: int | None = None
) -> Iterator[tuple[str, Make]]:
    """Names, and functions that make the preconditioners, in the order in which to try them."""
    if given is None or (isinstance(given, str) and given == "none"):
        yield "none", lambda: None
    elif not isinstance(given, str):
        made = _own(G, given, method)
        yield getattr(given, "name", type(given).__name__), lambda: made
    elif given == "auto":
        yield from _in_turn(G, method, threads)
    elif given in PRECONDITIONERS:
        yield given, lambda: _made(G, given, method, threads)
    else:
        one_of("solve", "preconditioner", given, ("auto", "none", *PRECONDITIONERS))


def _own(G: Any, given: Any, method: str) -> Any:
    """The user's preconditioner, if it fits the matrix and the method."""
    shape = getattr(given, "shape", None)
    if shape != (G.n, G.n):
        raise ValueError(f"solve: preconditioner must have shape {(G.n, G.n)}, got {shape}")
    if method in SYMMETRIC and getattr(given, "definite", None) is False:
        raise ValueError(
            f"solve: preconditioner must be positive definite for {method!r}, and this "
            f"{given.name} is not; make it with definite=True"
        )
    return given


def _in_turn(G: Any, method: str, threads: int | None) -> Iterator[tuple[str, Make]]:
    forest, singular = "algebraic_tridiagonal", False
    if method == "minres":
        yield forest, lambda: _made(G, forest, method, threads)
        yield "none", lambda: None
        return

    def first() -> Any:
        nonlocal singular
        try:
            made = _made(G, forest, method, threads)
        except np.linalg.LinAlgError:
            singular = True
            raise
        if coverage_of_order(G) > made.coverage:
            return _made(G, "tridiagonal", method, threads)
        return made

    yield forest, first
    yield "jacobi", lambda: ready.jacobi(G, threads=threads)
    if singular:
        options: dict[str, Any] = {"allow_singular": True, "threads": threads}
        yield f"{forest}, singular", lambda: ready.algebraic_tridiagonal(G, **options)
    yield "none", lambda: None


def _made(G: Any, name: str, method: str, threads: int | None) -> Any:
    """The preconditioner of that name; for CG a positive definite one, where that is possible.

    MINRES takes no other.
    """
    make: Callable[..., Any] = PRECONDITIONERS[name]
    if method == "minres":
        if name == "jacobi" and not bool((G.diagonal() > 0).all()):
            raise ValueError("solve: 'minres' needs a positive diagonal for 'jacobi'")
        return make(G, threads=threads, **({} if name == "jacobi" else {"definite": True}))
    if method == "cg" and name != "jacobi" and G.has_symmetric_values:
        try:
            return make(G, definite=True, threads=threads)
        except np.linalg.LinAlgError:
            raise
        except ValueError:  # the matrix is not positive definite itself
            return make(G, threads=threads)
    return make(G, threads=threads)
