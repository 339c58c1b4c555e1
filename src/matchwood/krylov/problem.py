"""A linear system for a Krylov method: checked, of one type, scaled where numbers are extreme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import plain
from matchwood.errors import EngineUnavailable
from matchwood.gate import graph as csr

# Exponents e: for numbers between 2^-e and 2^e, squares and products of a few do not overflow.
SAFE_EXPONENT = {np.dtype(np.float32): 30, np.dtype(np.float64): 250}


@dataclass(frozen=True)
class Problem:
    """``A x = b``; matrix and right-hand side are multiplied by powers of two where needed.

    That does not change the digits of the solution, only its exponent, by `shift`.
    """

    G: Any
    matrix: Any
    right: Any
    start: Any
    true: Any
    shift: int
    right_shift: int
    place: str  # where the solution goes: where the matrix was given

    def unscaled(self, x: Any) -> Any:
        """The solution of the system that was given, where it was given."""
        if self.shift == 0:
            return engines.moved(x, self.place)
        xp = engines.xp(x)
        with np.errstate(over="ignore", under="ignore"):
            answer = xp.ldexp(x, self.shift)
        largest = float(abs(x).max())
        there = float(abs(answer).max())
        if np.isfinite(largest) and largest and not np.finfo(x.dtype).tiny <= there < np.inf:
            raise OverflowError(f"solve: the solution is beyond the range of {x.dtype}")
        return engines.moved(answer, self.place)


def problem(
    A: Any,
    b: Any,
    x0: Any,
    true_solution: Any,
    caller: str,
    engine: str | None = None,
    threads: int | None = None,
) -> Problem:
    """The gate of `solve`.  The type is the wider one of `A` and `b`."""
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "reference":
        raise EngineUnavailable(f"{caller} has no 'reference' engine")
    G, place = call.graph, call.given.engine
    view = G.directed_weights(caller)
    data = view.data
    xp = engines.xp(data)
    size = _largest(data)
    if not np.isfinite(size):  # also where one is NaN
        G.undirected_weights(caller)  # names the entry
    right = call.here(_vector(b, "b", G.n, place))
    kind = np.result_type(data.dtype, right.dtype)
    kind = np.dtype(np.float32) if kind == np.float32 else np.dtype(np.float64)
    start, true = (
        None
        if array is None
        else call.here(_vector(array, name, G.n, place)).astype(kind, copy=False)
        for array, name in ((x0, "x0"), (true_solution, "true_solution"))
    )
    right = right.astype(kind, copy=False)
    exponent, right_exponent = _exponent(size, kind), _exponent(_largest(right), kind)
    if exponent or data.dtype != kind:
        wide = data.astype(kind, copy=False)
        G = csr.as_graph((view.indptr, view.indices, _scaled(xp, wide, -exponent)), caller)
    shift = right_exponent - exponent
    start, true = (
        None if array is None else _scaled(xp, array, -shift) for array in (start, true)
    )  # fmt: skip
    right = _scaled(xp, right, -right_exponent)
    return Problem(G, G.sparse_weights(), right, start, true, shift, right_exponent, place)


def _scaled(xp: Any, array: Any, power: int) -> Any:
    with np.errstate(under="ignore"):
        return xp.ldexp(array, power) if power else array


def _largest(array: Any) -> float:
    """The largest absolute value; NaN where there is one."""
    return float(abs(array).max()) if array.size else 0.0


def _exponent(largest: float, kind: Any) -> int:
    """The exponent of the largest number if it is outside SAFE_EXPONENT, else 0."""
    power = int(np.frexp(largest)[1]) if largest else 0
    return power if abs(power) > SAFE_EXPONENT[kind] else 0


def _vector(array: Any, name: str, n: int, where: str) -> Any:
    """A vector of n finite real numbers on the engine of the matrix."""
    if engines.location(array) == "cpu":
        array = plain("solve", name, array)
    if engines.location(array) != where:
        raise TypeError(f"solve: {name} must lie where A does, on the {where.upper()}")
    if array.shape != (n,):
        raise ValueError(f"solve: {name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"solve: {name} must be real, float64 at most, got {array.dtype}")
    if array.dtype.kind == "f":
        good = engines.xp(array).isfinite(array)
        if not bool(good.all()):
            at = int(good.argmin())
            raise ValueError(f"solve: {name} must be finite, got {float(array[at])} at {at}")
    return array
