"""The greedy factor on the GPU: rounds without charges until nobody proposes give the same one."""

from __future__ import annotations

from typing import Any

from matchwood.factors.result import Found, Plan
from matchwood.factors.rounds import gpu as rounds


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> Found:
    """See matchwood.factors.degree_factor."""
    found = rounds.find(view, plan._replace(limit=-1, period=1, uncharged=0), keep=keep)
    return found._replace(rounds=0, maximal=True)
