"""The arguments of `degree_factor`, checked, for its engines and its check."""

from __future__ import annotations

from typing import Any

from matchwood.arguments import count, flag, one_of, real, seed
from matchwood.factors.result import Plan
from matchwood.primitives.hashing import bit_barrier

# What a user may ask for, and the folder of that method.
METHODS = {"auto": "rounds", "parallel": "rounds", "greedy": "greedy"}


def make_plan(
    caller: str, n: int, *, method: str, rounds: int | None, period: int, uncharged: int,
    charge_probability: float, rng: Any, ties: str, directed: bool,
) -> Plan:  # fmt: skip
    """See matchwood.factors.degree_factor."""
    one_of(caller, "method", method, tuple(METHODS))
    one_of(caller, "ties", ties, ("index", "hash"))
    flag(caller, "directed", directed)
    if directed and method == "greedy":
        raise ValueError(f"{caller}: directed=True needs method='parallel', got 'greedy'")
    period = count(caller, "period", period, least=1)
    uncharged = count(caller, "uncharged", uncharged)
    if uncharged >= period:
        raise ValueError(
            f"{caller}: uncharged must be below period, "
            f"got uncharged={uncharged} and period={period}"
        )
    return Plan(
        n=count(caller, "n", n, least=1),
        limit=-1 if rounds is None else count(caller, "rounds", rounds),
        period=period,
        uncharged=uncharged,
        barrier=bit_barrier(real(caller, "charge_probability", charge_probability, 0, 1)),
        seed=seed(caller, rng),
        by_hash=ties == "hash",
        directed=bool(directed),
        method=METHODS[method],
    )
