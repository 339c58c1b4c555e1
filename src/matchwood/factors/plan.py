"""The arguments of `factor`, checked: what its engines and its check go by."""

from __future__ import annotations

from typing import Any

from matchwood.arguments import count, flag, one_of, real, seed
from matchwood.factors.result import Plan
from matchwood.primitives.hashing import bit_barrier


def make_plan(
    caller: str, n: int, *, method: str, M: int | None, m: int, k_m: int, p: float, rng: Any,
    ties: str, directed: bool,
) -> Plan:  # fmt: skip
    """See matchwood.factors.factor."""
    one_of(caller, "method", method, ("parallel", "greedy"))
    one_of(caller, "ties", ties, ("index", "hash"))
    flag(caller, "directed", directed)
    if directed and method == "greedy":
        raise ValueError(f"{caller}: directed=True needs method='parallel', got 'greedy'")
    m = count(caller, "m", m, least=1)
    k_m = count(caller, "k_m", k_m)
    if k_m >= m:
        raise ValueError(f"{caller}: k_m must be below m, got k_m={k_m} and m={m}")
    return Plan(
        n=count(caller, "n", n, least=1),
        limit=-1 if M is None else count(caller, "M", M),
        m=m,
        k_m=k_m,
        barrier=bit_barrier(real(caller, "p", p, 0, 1)),
        seed=seed(caller, rng),
        by_hash=ties == "hash",
        directed=bool(directed),
        method=method,
    )
