"""Are these the scores of a random surfer?  Decided by one more step, and by the first one.

A step brings any two scores nearer to each other, by the factor d (`damping`) at least.  So one
more step changes right scores by no more than d times what the last one did; and number k changed
them by no more than d^(k-1) times what the first one did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, arguments, calls
from matchwood.errors import CheckFailed
from matchwood.ranking.problem import Options, Problem, options

PACKAGE = __name__.rpartition(".")[0]
PLACES = 16  # roundings of a score, besides those of its row's sum


def check_pagerank(
    A: Any,
    answer: Any,
    *,
    damping: float = 0.85,
    tol: float | None = None,
    max_iterations: int = 100,
    personalization: Any = None,
    dangling: Any = None,
    start: Any = None,
    weighted: bool = False,
    replay: bool = False,
) -> None:
    """Raise `CheckFailed` unless `answer` is what `pagerank` may return.

    The scores are not negative and add up to 1.  They have converged exactly if the error is less
    than `tol`; if not, there were `max_iterations`, and never more.  Another iteration
    changes them by at most damping times the error, which is no larger than this number of
    iterations allows.  So they are within ``damping * error / (1 - damping)`` of the right ones.

    What it does not decide: how many iterations a search took that has converged, and whether the
    error was less than is stated.  `replay` decides that.

    Parameters
    ----------
    A, damping, tol, max_iterations, personalization, dangling, start, weighted
        As given to `pagerank`.
    answer : Ranking
    replay : bool
        Also make all iterations once more, in float64: scores, error and iterations must be those
        of the answer, to rounding.

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no such numbers, a weight that is read is negative, or an argument is
        wrong.

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
    given = (damping, tol, max_iterations, personalization, dangling, start, weighted)

    def checked() -> Options:
        arguments.flag(caller, "replay", replay)
        kind = getattr(getattr(answer, "scores", None), "dtype", None)  # which decides on `tol`
        asked = options(caller, *given, np.float32 if kind == np.float32 else np.float64)
        return asked._replace(dtype=np.dtype(np.float64))

    asked = calls.agreed(A, checked)
    call = calls.enter(A, caller, None if calls.is_distributed(A) else "cpu")
    if call.engine == "ranks":
        call.load_check(PACKAGE).check(A, answer, asked, caller, replay)
        return
    problem = asked.on(call, caller)
    n = call.given.n
    stated = check_numbers(caller, answer, n, asked)
    scores = answers.reals(caller, "pagerank", "scores", answer.scores, (n,), "cpu")
    if n:
        _check_scores(problem, scores, asked, stated, replay)


def check_numbers(caller: str, answer: Any, n: int, asked: Options) -> tuple[float, int]:
    """The error and the iterations of an answer, if they fit each other."""
    for name in ("scores", "iterations", "error", "converged"):
        if not hasattr(answer, name):
            raise TypeError(f"{caller}: answer must be a Ranking, got {type(answer).__name__}")
    error = float(answers.number(caller, "error", answer.error))
    iterations = answers.whole(caller, "iterations", answer.iterations)
    arguments.flag(caller, "converged", answer.converged)
    if not error >= 0:
        raise CheckFailed(f"pagerank: the error is {error}, but must not be negative")
    if bool(answer.converged) != (n == 0 or error < asked.tol):
        raise CheckFailed(
            f"pagerank: converged is {answer.converged} with an error of {error} and tol = "
            f"{asked.tol}"
        )
    if (iterations < 1) if n else (iterations != 0 or error != 0):
        raise CheckFailed(f"pagerank: {iterations} iterations on {n} vertices")
    if iterations > asked.most or (iterations < asked.most and not answer.converged):
        ended = "has converged" if answer.converged else "has not converged"
        raise CheckFailed(
            f"pagerank: {ended} after {iterations} iterations, with max_iterations={asked.most}"
        )
    return error, iterations


def is_pagerank(A: Any, answer: Any, **options: Any) -> bool:
    """Whether this is a right answer of `pagerank`; `check_pagerank` says why not.

    Its options are those of `check_pagerank`.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(5)
    >>> matchwood.check.is_pagerank(A, matchwood.pagerank(A, damping=0.5))
    False
    """
    return answers.holds(check_pagerank, A, answer, **options)


def _check_scores(
    problem: Problem, scores: Any, asked: Options, stated: tuple[float, int], replay: bool
) -> None:
    view = problem.incoming
    unit = float(np.finfo(scores.dtype if scores.dtype.kind == "f" else np.float64).eps)
    x = scores.astype(np.float64)
    at = answers.first(~((x >= 0) & (x < np.inf)))  # NaN is not
    if at is not None:
        raise CheckFailed(f"pagerank: the score of vertex {at} is {x[at]}")
    with np.errstate(over="ignore", invalid="ignore"):  # scores that add up to infinity are wrong
        rounding = unit * float(((PLACES + np.diff(view.indptr)) * x).sum())
        total = float(x.sum())
    steps = Steps(
        lambda x: _step(problem, x), lambda x: float(np.abs(x).sum()), problem.start, view.n
    )
    judge(asked, steps, x, total, rounding, stated)
    if replay:
        replayed(asked, steps, x, rounding, stated)


class Steps(NamedTuple):
    """How iterations are made, on one machine or on ranks; all in float64."""

    step: Callable[[Any], Any]  # the scores after one
    size: Callable[[Any], float]  # the sum of the magnitudes, over all ranks
    start: Any
    n: int


def judge(
    asked: Options, steps: Steps, x: Any, total: float, rounding: float, stated: tuple[float, int]
) -> None:
    """Raise unless the scores add up to 1, and another iteration changes them little enough."""
    damping, (error, iterations) = asked.damping, stated
    # What an iteration rounds off shrinks by the factor d with each one after it.  It is never
    # more than 1: scores so large that `rounding` is infinite must not excuse themselves.
    if not abs(total - 1) <= min(rounding / (1 - damping), 1.0):
        raise CheckFailed(f"pagerank: the scores add up to {total}, but must to 1")
    change = steps.size(steps.step(x) - x)
    if not change <= damping * error + 2 * rounding:
        raise CheckFailed(
            f"pagerank: another iteration changes the scores by {change:.6g}, but may by no more "
            f"than damping times the error, {damping * error:.6g}"
        )
    # a float that is 0 stays 0 for any larger power
    most = steps.size(steps.step(steps.start) - steps.start)
    most *= damping ** min(iterations - 1, 1 << 20)
    if not error <= most * (1 + 1e-9) + 2 * rounding / (1 - damping):
        raise CheckFailed(
            f"pagerank: the error is {error:.6g}, but after {iterations} iterations it is at most "
            f"{most:.6g}"
        )


def replayed(
    asked: Options, steps: Steps, x: Any, rounding: float, stated: tuple[float, int]
) -> None:
    """Raise unless the stated number of iterations leads to these scores, and none ended before."""
    error, iterations = stated
    goal, near = asked.tol, 2 * rounding / (1 - asked.damping)
    now, change = steps.start, np.inf
    for k in range(iterations):
        if change < goal - near:
            raise CheckFailed(
                f"pagerank: iterations is {iterations}, but number {k} was the last: it changes "
                f"the scores by {change:.6g}, less than tol = {goal}"
            )
        before, now = now, steps.step(now)
        change = steps.size(now - before)
    if not abs(change - error) <= near:
        raise CheckFailed(
            f"pagerank: the error is {error:.6g}, but iteration {iterations} changes the scores by "
            f"{change:.6g}"
        )
    far = steps.size(now - x)
    if not far <= near:
        raise CheckFailed(f"pagerank: the scores are off by {far:.6g} after a replay")


def _step(problem: Problem, x: Any) -> Any:
    view, n = problem.incoming, problem.incoming.n
    pulled = np.zeros(n)
    given = x * problem.share
    for begin, j, i in answers.arcs(view):
        flow = given[i]
        if view.data is not None:
            flow = flow * view.data[begin : begin + i.size]
        pulled += np.bincount(j, weights=flow, minlength=n)
    p = np.full(n, 1 / n) if problem.jump is None else problem.jump
    q = p if problem.dangling is None else problem.dangling
    lost = x[problem.share == 0].sum()
    return problem.damping * (pulled + lost * q) + (1 - problem.damping) * p
