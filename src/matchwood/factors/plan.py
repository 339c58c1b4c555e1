"""The arguments of `degree_factor`, checked, and the weights of a directed factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood import arguments, engines
from matchwood.arguments import count, flag, one_of, real, seed
from matchwood.factors.result import Plan
from matchwood.gate.graph import Graph, View
from matchwood.primitives.hashing import bit_barrier
from matchwood.primitives.symmetrize import magnitudes

# The letters of the paper, which were the names of arguments, and their names now.
LETTERS = {"M": "rounds", "m": "period", "k_m": "uncharged", "p": "charge_probability"}

# The methods that a user may ask for, and their folders.
METHODS = {"auto": "rounds", "parallel": "rounds", "greedy": "greedy"}


def make_plan(
    caller: str, n: int, *, method: str, rounds: int | None, period: int, uncharged: int,
    charge_probability: float, rng: Any, ties: str, directed: bool,
) -> Plan:  # fmt: skip
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


def in_words(caller: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments `known`, updated by those `given` by their old letters."""
    return arguments.in_words(caller, given, known, LETTERS, stacklevel=4)


def options_in_words(
    caller: str, options: Mapping[str, Any], allowed: tuple[str, ...]
) -> dict[str, Any]:
    """The options of a factor under their present names; TypeError for one not `allowed`."""
    unknown = options.keys() - {*allowed, *LETTERS}
    if unknown:
        raise TypeError(f"{caller}: unknown argument {min(unknown)!r}")
    letters = {name: value for name, value in options.items() if name in LETTERS}
    words = {name: value for name, value in options.items() if name not in LETTERS}
    return arguments.in_words(caller, letters, words, LETTERS, stacklevel=4)


def directed_magnitudes(G: Graph, caller: str) -> View:
    """|a_ij| for every stored entry off the diagonal that is not zero, for directed factors."""
    view = G.heaviest_weights(caller)
    finite = abs(view.data) < float("inf")  # false for NaN
    if not bool(finite.all()):
        at = int(finite.argmin())
        row = int(engines.moved(view.indptr, "cpu").searchsorted(at, "right")) - 1
        raise ValueError(
            f"{caller}: weights must be finite, got {float(view.data[at])} at row {row}, "
            f"column {int(view.indices[at])}"
        )
    return View(*magnitudes(*view))
