"""The greedy factor on the GPU: rounds without charges until no vertex proposes end with it."""

from __future__ import annotations

from typing import Any

from matchwood.factors.result import FactorArrays, Plan
from matchwood.factors.rounds import gpu


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> FactorArrays:
    uncharged = plan._replace(limit=-1, period=1, uncharged=0)
    return gpu.find(view, uncharged, keep=keep)._replace(rounds=0, maximal=True)
