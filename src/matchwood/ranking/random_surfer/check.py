"""Are these the scores of a random surfer?  Decided by one more step.

A step brings any two scores nearer to each other, by the factor d (`damping`) at least.  So one
more step changes right scores by no more than d times what the last one did; and since the first
one changed them by no more than 2, number k did by no more than 2 d^(k-1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments, calls, engines
from matchwood.errors import CheckFailed
from matchwood.ranking.random_surfer.problem import Problem, options

PACKAGE = __name__.rpartition(".")[0]
PLACES = 16  # of rounding in a score, besides those of its row's sum


def check_pagerank(
    A: Any,
    answer: Any,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    personalization: Any = None,
    dangling: Any = None,
    weighted: bool = False,
) -> None:
    """Raise `CheckFailed` unless `answer` is what `pagerank` may return.

    The scores are not negative and add up to 1; they have converged exactly if the error is less
    than ``n * tol``; another iteration changes them by at most damping times the error; and the
    error is one that so many iterations may leave.

    Parameters
    ----------
    A, damping, tol, personalization, dangling, weighted : as given to `pagerank`
    answer : Ranking

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no such numbers, or an argument is wrong.

    Notes
    -----
    Runs on the CPU in float64: what lives on a GPU is moved.  Rounding is allowed for, as much as
    sums of such rows in the type of the scores may have.

    Of a `DistributedGraph` all ranks call it, each with its part of the answer.  Nothing is
    gathered, and what one rank finds wrong, all raise.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(5)
    >>> found = matchwood.pagerank(A)
    >>> matchwood.check.check_pagerank(A, found)
    >>> matchwood.check.check_pagerank(A, found, damping=0.5)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: pagerank: another iteration changes the scores by 0.227...
    """
    caller = "check_pagerank"
    given = (damping, tol, 1, personalization, dangling, None, weighted, np.float64)
    asked = calls.agreed(A, lambda: options(caller, *given))
    if calls.is_distributed(A):
        engines.load(PACKAGE, "dist_check").check(A, answer, asked, caller)
        return
    call = calls.enter(A, caller, "cpu")
    problem = asked.on(call, caller)
    n = call.given.n
    error, iterations = check_numbers(caller, answer, n, asked.tol)
    scores = answers.reals(caller, "pagerank", "scores", answer.scores, (n,), "cpu")
    if n:
        _check_scores(problem, scores, error, iterations)


def check_numbers(caller: str, answer: Any, n: int, tol: float) -> tuple[float, int]:
    """The error and the iterations of an answer, if they fit each other."""
    for name in ("scores", "iterations", "error", "converged"):
        if not hasattr(answer, name):
            raise TypeError(f"{caller}: answer must be a Ranking, got {type(answer).__name__}")
    error = float(answers.number(caller, "error", answer.error))
    iterations = answers.whole(caller, "iterations", answer.iterations)
    arguments.flag(caller, "converged", answer.converged)
    if not error >= 0:
        raise CheckFailed(f"pagerank: the error is {error}, but must not be negative")
    if bool(answer.converged) != (n == 0 or error < n * tol):
        raise CheckFailed(
            f"pagerank: converged is {answer.converged} with an error of {error} and n tol = "
            f"{n * tol}"
        )
    if (iterations < 1) if n else (iterations != 0 or error != 0):
        raise CheckFailed(f"pagerank: {iterations} iterations on {n} vertices")
    return error, iterations


def is_pagerank(
    A: Any,
    answer: Any,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    personalization: Any = None,
    dangling: Any = None,
    weighted: bool = False,
) -> bool:
    """Whether this is a right answer of `pagerank`; `check_pagerank` says why not.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(5)
    >>> matchwood.check.is_pagerank(A, matchwood.pagerank(A, damping=0.5))
    False
    """
    return answers.holds(
        check_pagerank, A, answer, damping=damping, tol=tol, personalization=personalization,
        dangling=dangling, weighted=weighted,
    )  # fmt: skip


def _check_scores(problem: Problem, scores: Any, error: float, iterations: int) -> None:
    view = problem.incoming
    unit = float(np.finfo(scores.dtype if scores.dtype.kind == "f" else np.float64).eps)
    x = scores.astype(np.float64)
    at = answers.first(~((x >= 0) & (x < np.inf)))  # NaN is not
    if at is not None:
        raise CheckFailed(f"pagerank: the score of vertex {at} is {x[at]}")
    with np.errstate(over="ignore", invalid="ignore"):  # scores that add up to infinity are wrong
        rounding = unit * float(((PLACES + np.diff(view.indptr)) * x).sum())
        total = float(x.sum())
        change = float(np.abs(_step(problem, x) - x).sum())
    judge(problem.damping, total, rounding, change, error, iterations)


def judge(
    damping: float, total: float, rounding: float, change: float, error: float, iterations: int
) -> None:
    """Raise unless the scores add up to 1, and another iteration changes them by so little."""
    # What an iteration rounds off shrinks by the factor d with each one after it.  It is never
    # more than 1: scores so large that `rounding` is infinite must not excuse themselves.
    if not abs(total - 1) <= min(rounding / (1 - damping), 1.0):
        raise CheckFailed(f"pagerank: the scores add up to {total}, but must to 1")
    if not change <= damping * error + 2 * rounding:
        raise CheckFailed(
            f"pagerank: another iteration changes the scores by {change:.6g}, but may by no more "
            f"than damping times the error, {damping * error:.6g}"
        )
    # a float that is 0 stays 0 for any larger power
    most = 2 * damping ** min(iterations - 1, 1 << 20)
    if not error <= most * (1 + 1e-9) + 2 * rounding / (1 - damping):
        raise CheckFailed(
            f"pagerank: the error is {error:.6g}, but after {iterations} iterations it is at most "
            f"{most:.6g}"
        )


def _step(problem: Problem, x: Any) -> Any:
    view, n = problem.incoming, problem.incoming.n
    pulled = np.zeros(n)
    given = x * problem.share
    for begin, j, i in answers.arcs(view):
        came = given[i]
        if view.data is not None:
            came = came * view.data[begin : begin + i.size]
        pulled += np.bincount(j, weights=came, minlength=n)
    p = np.full(n, 1 / n) if problem.jump is None else problem.jump
    q = p if problem.dangling is None else problem.dangling
    lost = x[problem.share == 0].sum()
    return problem.damping * (pulled + lost * q) + (1 - problem.damping) * p
