"""`matchwood pagerank`: where a random surfer spends the time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.errors import FellShort
from matchwood.cli.options import Graph
from matchwood.cli.output import print_table
from matchwood.cli.shared import Shared, report, timed, with_shared

Damping = Annotated[float, typer.Option("--damping", help="Probability to follow an arc, below 1.")]
Tol = Annotated[
    float, typer.Option("--tol", help="Stop when the scores change by less, times vertices.")
]
Iterations = Annotated[int, typer.Option("--max-iterations", min=1, help="Stop after so many.")]
Weighted = Annotated[bool, typer.Option("--weighted", help="Read values as weights of arcs.")]
SHOWN = 10  # vertices of the highest scores in the table


@with_shared
def command(
    graph: Graph,
    damping: Damping = 0.85,
    tol: Tol = 1e-6,
    iterations: Iterations = 100,
    weighted: Weighted = False,
    *,
    shared: Shared,
) -> None:
    """Score vertices by how often a random surfer comes there.

    A result file has the score of each vertex.
    """
    loaded = shared.load(graph)
    import numpy as np

    import matchwood

    options: dict[str, Any] = {
        "damping": damping, "tol": tol, "max_iterations": iterations, "weighted": weighted,
    }  # fmt: skip
    with timed("ranking") as taken:
        found = matchwood.pagerank(loaded.matrix, **options, **shared.where)
    shared.verify(matchwood.check.check_pagerank, loaded.matrix, found, **options)
    scores = found.scores
    first = np.argsort(-scores, kind="stable")[:SHOWN].tolist()
    top = [(v if loaded.ids is None else loaded.ids[v], float(scores[v])) for v in first]
    shared.write(loaded, {"score": scores}, **numbers_of(found))
    told = facts_of_ranking(len(scores), found, damping, top)
    report(shared, loaded, taken, "rank", f"pagerank of {graph}", **told)
    if not shared.as_json:
        print_table("highest scores", ("vertex", "score"), top)
    require_converged(found, "pagerank", tol)


def require_converged(found: Any, verb: str, tol: float) -> None:
    """Raise, after all was shown and written, where the scores still changed by more than asked."""
    if not found.converged:
        raise FellShort(
            f"{verb}: not converged after {found.iterations} iterations: the error is "
            f"{found.error:.3g}, above --tol {tol:g} times the vertices; give more "
            "--max-iterations, or a larger --tol"
        )


def numbers_of(found: Any) -> dict[str, Any]:
    """How a ranking ended."""
    return {
        "iterations": found.iterations,
        "error": found.error,
        "converged": bool(found.converged),
    }


def facts_of_ranking(n: int, found: Any, damping: float, top: list[Any]) -> dict[str, Any]:
    """The facts for programs and for people; `top` are (vertex, score)."""
    facts = {
        "vertices": n,
        **numbers_of(found),
        "damping": damping,
        "top": [{"vertex": v, "score": score} for v, score in top],
    }
    shown = {
        "vertices": n,
        "iterations": found.iterations,
        "converged": "yes" if found.converged else "no",
        "error": f"{found.error:.3g}",
    }
    return {"facts": facts, "shown": shown}
