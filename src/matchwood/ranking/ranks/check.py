"""Are these the scores of a random surfer, on a grid of ranks?  ranking/check.py has the reasons.

Steps are made with the exchanges of ranks, and sums run over all ranks: nothing is gathered.  What
one rank finds wrong, all raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.engines.ranks.agreement import raise_first, same
from matchwood.engines.ranks.vectors import own_part
from matchwood.errors import CheckFailed
from matchwood.ranking import ranks
from matchwood.ranking.check import PLACES, Steps, check_numbers, judge, replayed
from matchwood.ranking.problem import Options


def check(G: Any, answer: Any, asked: Options, caller: str, replay: bool) -> None:
    """See `check_pagerank`; all ranks call it, each with its own answer."""
    same(G.comm, caller, replay=replay)
    error: Exception | None = None
    found: tuple[float, int] = 0.0, 0
    try:
        found = check_numbers(caller, answer, G.n, asked)
    except (TypeError, CheckFailed) as caught:
        error = caught
    raise_first(G.comm, error)
    own = own_part(G, caller, "scores", answer.scores)
    _check_alike(G, *found)
    try:
        own = answers.reals(caller, "pagerank", "scores", own, (G.grid.owned,), G.engine)
    except (TypeError, CheckFailed) as caught:
        error = caught
    raise_first(G.comm, error)
    if G.n:
        _check_scores(G, own, asked, caller, found, replay)


def _check_alike(G: Any, error: float, iterations: int) -> None:
    """Raise unless the numbers of an answer are the same on all ranks."""
    stated = G.comm.objects((error, iterations))
    for rank, each in enumerate(stated):
        if each != stated[0]:
            raise CheckFailed(
                f"pagerank: ranks differ in (error, iterations): {stated[0]} on rank 0, "
                f"{each} on rank {rank}"
            )


def _check_scores(
    G: Any, own: Any, asked: Options, caller: str, stated: tuple[float, int], replay: bool
) -> None:
    xp = engines.xp(own)
    unit = float(np.finfo(own.dtype if own.dtype.kind == "f" else np.float64).eps)
    x = own.astype(np.float64)
    raise_first(G.comm, *_first_wrong(G, x))
    ranks.agree(G, asked._replace(dtype=np.dtype(np.float64)), caller)
    problem = ranks.problem_of(G, asked._replace(dtype=np.dtype(np.float64)), caller, G.threads)
    block = problem.block
    lengths = G.exchange.fold(xp.diff(block.indptr).astype(np.int64), "sum")
    pull = ranks.engine_of(G).pull
    p = 1 / G.n if problem.jump is None else problem.jump
    q = p if problem.dangling is None else problem.dangling

    def step(x: Any) -> Any:
        (lost,) = ranks.added_up(G, float(x[problem.share == 0].sum()))
        given = G.exchange.expand_by_kind(x * problem.share)
        pulled = G.exchange.fold_by_kind(pull(block, given, G.threads))
        return asked.damping * (pulled + lost * q) + (1 - asked.damping) * p

    def size(x: Any) -> float:
        return ranks.added_up(G, float(abs(x).sum()))[0]

    with np.errstate(over="ignore", invalid="ignore"):  # scores that add up to infinity are wrong
        rounding = float(((PLACES + lengths) * x).sum())
        total, rounding = ranks.added_up(G, float(x.sum()), rounding)
    steps = Steps(step, size, problem.start, G.n)
    judge(asked, steps, x, total, unit * rounding, stated)
    if replay:
        replayed(asked, steps, x, unit * rounding, stated)


def _first_wrong(G: Any, x: Any) -> tuple[Exception | None, int]:
    """The error of the own score that is no number, and its vertex."""
    at = answers.first(~((x >= 0) & (x < np.inf)))  # NaN is not
    if at is None:
        return None, 0
    v = int(G.ids[at])
    return CheckFailed(f"pagerank: the score of vertex {v} is {float(x[at])}"), v
