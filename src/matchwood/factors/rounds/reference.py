"""Rounds of proposals as the paper defines them, with lists.  Line numbers: Algorithm 2."""

from __future__ import annotations

import itertools
from typing import Any

from matchwood.factors.preferences import preferences, tabulated
from matchwood.factors.result import Found, Plan
from matchwood.primitives.hashing import round_number
from matchwood.primitives.hashing.reference import quarter_md5_number


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> Found:
    """See matchwood.factors.degree_factor."""
    n, vertices = plan.n, range(view.n)
    preference = preferences(view, plan)
    pi: list[list[int]] = [[] for _ in vertices]  # 4
    maximal, rounds, idle = False, 0, 0
    for k in itertools.count():  # 7
        if k == plan.limit or (plan.limit < 0 and idle == plan.period):
            break
        rounds = k + 1
        r = round_number(plan.seed, k)
        charge = [quarter_md5_number(v, r) < plan.barrier for v in vertices]  # 10
        proposals: list[list[int]] = []
        for v in vertices:  # 14
            admissible = [
                w
                for w in preference[v]
                if len(pi[w]) < n  # 15
                and not (plan.charged(k) and charge[w] == charge[v])  # 17
                and w not in pi[v]
            ]
            proposals.append(admissible[: n - len(pi[v])])  # 20
        if not plan.charged(k) and not any(proposals):  # 23
            maximal = True
            break
        mutual = [[w for w in proposals[v] if v in proposals[w]] for v in vertices]  # 27
        pi = [pi[v] + mutual[v] for v in vertices]
        idle = 0 if any(mutual) else idle + 1
    return tabulated(view, plan, pi, rounds, maximal)
