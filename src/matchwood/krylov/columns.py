"""Several right-hand sides: one after the other, with one preconditioner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import plain
from matchwood.gate import graph as csr
from matchwood.krylov.history import Solution


def solve_columns(
    solve: Callable[..., Solution],
    A: Any,
    b: Any,
    x0: Any,
    true_solution: Any,
    options: dict[str, Any],
) -> Solution:
    """`solve` for a right-hand side of shape (n, k)."""
    caller = "solve"
    G = csr.as_graph(A, caller)
    given = {"b": b, "x0": x0, "true_solution": true_solution}
    for name, array in given.items():
        if array is None:
            continue
        array = given[name] = plain(caller, name, array) if _on_host(array) else array
        if array.ndim != 2 or array.shape != (G.n, given["b"].shape[1]):
            wanted = f"({G.n}, {given['b'].shape[1]})" if name != "b" else f"({G.n}, k)"
            raise ValueError(f"{caller}: {name} must have shape {wanted}, got {array.shape}")
    if given["b"].shape[1] == 0:
        return _nothing(given["b"])
    preconditioner = options["preconditioner"]
    found: list[Solution] = []
    for j in range(given["b"].shape[1]):
        b_j, x_j, true_j = (
            None if array is None else engines.xp(array).ascontiguousarray(array[:, j])
            for array in given.values()
        )
        answer = solve(G, b_j, x0=x_j, true_solution=true_j, **options)
        found.append(answer)
        if isinstance(preconditioner, str) and answer.converged:
            made = answer.preconditioner
            options = {**options, "preconditioner": "none" if made is None else made}
    return _together(found)


def _on_host(array: Any) -> bool:
    return engines.location(array) == "cpu"


def _nothing(b: Any) -> Solution:
    return Solution(
        b.copy(), 0, True, 0, np.zeros(1), None, None, {"setup": 0.0, "iterations": 0.0}
    )


def _together(found: list[Solution]) -> Solution:
    """One Solution: the histories are those of the column that ended with the largest residual."""
    worst = max(found, key=lambda one: (np.isnan(one.residuals[-1]), one.residuals[-1]))
    names = found[0].seconds
    return dataclasses.replace(
        worst,
        x=engines.xp(worst.x).stack([one.x for one in found], axis=1),
        info=next((one.info for one in found if one.info != 0), 0),
        converged=all(one.converged for one in found),
        preconditioner=found[0].preconditioner,
        seconds={name: sum(one.seconds[name] for one in found) for name in names},
        tried=found[0].tried,
        columns=tuple(found),
    )
