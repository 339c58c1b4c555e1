"""The verbs about matrices: PageRank, preconditioners, linear systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.errors import FellShort
from matchwood.cli.load import load
from matchwood.cli.options import (
    Engine,
    Graph,
    Json,
    Output,
    Read,
    Rng,
    Shared,
    Threads,
    report,
    timed,
    with_options,
)
from matchwood.cli.output import duration, print_json, print_table, progress
from matchwood.report.timing import clock

Damping = Annotated[float, typer.Option("--damping", help="Probability to follow an arc, below 1.")]
Tol = Annotated[float, typer.Option("--tol", help="Stop when the scores change by less in all.")]
Iterations = Annotated[int, typer.Option("--max-iterations", min=1, help="Stop after this many.")]
Weighted = Annotated[bool, typer.Option("--weighted", help="Read values as weights of arcs.")]
SHOWN = 10  # vertices of the highest scores in the table


@with_options
def pagerank(
    graph: Graph,
    damping: Damping = 0.85,
    tol: Tol = 1e-6,
    iterations: Iterations = 100,
    weighted: Weighted = False,
    personalization: Annotated[
        list[str] | None,
        typer.Option(
            "--personalization",
            metavar="VERTEX[=WEIGHT]",
            help="The surfer starts here, in proportion to the weights; may be repeated.",
        ),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Score vertices by how often a random surfer comes there.

    A result file has the score of each vertex.
    """
    loaded = shared.load(graph)
    import numpy as np

    options: dict[str, Any] = {
        "damping": damping, "tol": tol, "max_iterations": iterations, "weighted": weighted,
        "personalization": _starts(loaded, personalization),
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


def _starts(loaded: Any, given: list[str] | None) -> Any:
    """Where the surfer starts, as an array of weights; None where anywhere."""
    import numpy as np

    if not given:
        return None
    weights = np.zeros(loaded.matrix.shape[0])
    for text in given:
        name, _, weight = text.rpartition("=")
        vertex = loaded.vertex(name or text)
        if not 0 <= vertex < weights.size:
            raise ValueError(
                f"--personalization {text}: there are the vertices 0 to {weights.size - 1}"
            )
        try:
            weights[vertex] += float(weight) if name else 1.0
        except ValueError:
            raise ValueError(f"--personalization {text}: the weight must be a number") from None
    return weights


def require_converged(found: Any, verb: str, tol: float) -> None:
    """Raise, after all was shown and written, where the scores still changed by more than asked."""
    if not found.converged:
        raise FellShort(
            f"{verb}: not converged after {found.iterations} iterations: the error is "
            f"{found.error:.3g}, above --tol {tol:g}; give more --max-iterations, or a larger --tol"
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


KINDS = (
    "jacobi",
    "tridiagonal",
    "algebraic_tridiagonal",
    "algebraic_block_tridiagonal",
    "multilevel",
)


def precondition(
    matrix: Graph,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="Only this one: " + ", ".join(KINDS), metavar="NAME"),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", "-M", min=0, help="Rounds of the factors.")
    ] = 5,
    period: Annotated[
        int | None,
        typer.Option("--period", "-m", min=1, help="Charges are off once in this many rounds."),
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties",
            help="index or hash: which of equally heavy edges to prefer.  "
            "Left out: hash for paths, index for pairs.",
        ),
    ] = None,
    rng: Rng = 0,
    engine: Engine = None,
    threads: Threads = None,
    read: Read = None,
    as_json: Json = False,
) -> None:
    """Set up preconditioners: how much of the matrix they contain, setup and application time."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"--kind must be one of {', '.join(KINDS)}, got {kind!r}")
    loaded = load(matrix, read=read)
    G = matchwood.graph(loaded.matrix).on("cpu" if engine is None else engine)
    rows: dict[str, Any] = {}
    for name in KINDS if kind is None else (kind,):
        with progress(f"setting up {name}"):
            options = _options(name, {"rounds": rounds, "ties": ties, "rng": rng}, period)
            rows[name] = _measure(G, name, {**options, "threads": threads}, kind is not None)
    if as_json:
        print_json({"matrix": matrix, "rows": G.n, "entries": G.nnz, "preconditioners": rows})
        return
    print_table(
        f"preconditioners of {matrix}: {G.n:,} rows, {G.nnz:,} entries",
        ("", "coverage", "definite", "setup", "one application", "setup by phase"),
        [_cells_precondition(name, row, duration) for name, row in rows.items()],
    )


def _options(name: str, given: dict[str, Any], period: int | None) -> dict[str, Any]:
    """Those of a factor, for the preconditioners that have one."""
    if not name.startswith("algebraic"):
        return {}
    given = {**given, "period": period}
    return {option: value for option, value in given.items() if value is not None}


def _measure(G: Any, name: str, options: dict[str, Any], only: bool) -> dict[str, Any]:
    """Set up twice, so that compiling does not count; apply once to ones.

    An error is shown in the table, unless this preconditioner alone was asked for.
    """
    import numpy as np

    from matchwood import engines, preconditioners

    make = getattr(preconditioners, name)
    try:
        M = make(G, **options)
        ones = 1 + 0 * _diagonal_like(G)
        _ = M @ ones
        M = make(G, **options)
        phases = M.seconds
        with clock() as taken:
            _ = M @ ones
            if G.engine == "gpu":
                engines.cupy().cuda.get_current_stream().synchronize()
    except ValueError as error:
        singular = isinstance(error, np.linalg.LinAlgError)
        diagonal = name in ("jacobi", "multilevel")  # a zero on it, or a negative number
        if only or not (singular or diagonal):
            raise
        return {"error": str(error)}  # the others may be possible
    return {
        "coverage": M.coverage,
        "definite": M.definite,
        "setup": sum(phases.values()),
        "application": taken.seconds,
        "phases": phases,
    }


def _diagonal_like(G: Any) -> Any:
    """A vector of the matrix's type where it lies."""
    from matchwood import engines

    data = G.directed_weights().data
    return engines.xp(data).zeros(G.n, data.dtype)


def _cells_precondition(name: str, row: dict[str, Any], duration: Any) -> tuple[str, ...]:
    title = name.replace("_", " ")
    if "error" in row:
        return title, "", "", "", "", row["error"]
    phases = ", ".join(f"{phase} {duration(taken)}" for phase, taken in row["phases"].items())
    times = (duration(row["setup"]), duration(row["application"]))
    definite = {True: "yes", False: "no", None: ""}[row["definite"]]
    return title, f"{row['coverage']:.3f}", definite, *times, phases


PERIODS = 8  # periods of the sine that is the solution where no right-hand side is given


def solve(
    matrix: Graph,
    right: Annotated[
        Path | None,
        typer.Argument(
            metavar="[B]",
            help="The right-hand side: .mtx, .npy or numbers in a text file.  Without it, that "
            "of x[i] = sin(16 pi i / n).",
        ),
    ] = None,
    preconditioner: Annotated[
        str,
        typer.Option(
            "--preconditioner",
            "-p",
            help="auto, none, all, jacobi, tridiagonal, algebraic_tridiagonal, "
            "algebraic_block_tridiagonal or multilevel.  With all they are compared.",
        ),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option("--method", help="auto, bicgstab, cg, gmres, minres, fcg, fgmres, fbicgstab."),
    ] = "auto",
    rtol: Annotated[
        float | None,
        typer.Option(
            "--rtol",
            min=0,
            help="Relative residual to reach; 1e-8, in single precision 1e-5, unless given.",
        ),
    ] = None,
    maxiter: Annotated[int, typer.Option("--maxiter", min=1, help="Iterations at most.")] = 1000,
    restart: Annotated[
        int | None, typer.Option("--restart", min=1, help="Of gmres: iterations between restarts.")
    ] = None,
    engine: Engine = None,
    threads: Threads = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the history: .svg, .png or .pdf."),
    ] = None,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Solve A x = b, and say how the residual went down."""
    results.check_suffix(output, matrix, *([] if right is None else [right]))
    if plot is not None:
        if plot.suffix not in (".svg", ".png", ".pdf"):
            raise ValueError(f"--plot {plot}: the name must end in .svg, .png or .pdf")
        results.check_place(plot, "--plot")
    import numpy as np

    from matchwood import engines
    from matchwood.krylov import PRECONDITIONERS

    loaded = load(matrix, read=read)
    A = loaded.matrix
    n = A.shape[0]
    true = None if right is not None else np.sin(2 * PERIODS * np.pi * np.arange(n) / max(n, 1))
    b = A @ true if right is None else _vector(right, n)
    G = matchwood.graph(A).on("cpu" if engine is None else engine)
    where = G.engine
    names = ["none", *PRECONDITIONERS] if preconditioner == "all" else [preconditioner]
    found: dict[str, Any] = {}
    impossible: dict[str, str] = {}
    for name in names:
        with progress(f"solving with {name}"):
            try:
                found[name] = matchwood.solve(
                    G,
                    engines.moved(b, where),
                    preconditioner=name,
                    method=method,
                    rtol=rtol,
                    maxiter=maxiter,
                    restart=restart,
                    threads=threads,
                    true_solution=engines.moved(true, where),
                )
            except ValueError as error:  # singular, a zero diagonal: the others may be possible
                if name not in PRECONDITIONERS or len(names) == 1:
                    raise
                impossible[name] = str(error)
    method = ", ".join(sorted({answer.method for answer in found.values()}))
    if output is not None:
        best = min(found.values(), key=lambda answer: answer.residuals[-1])
        results.write(output, {"x": engines.moved(best.x, "cpu")}, {})
    if plot is not None:
        _draw_solve(found, plot, f"{method}, {matrix}")
    if as_json:
        print_json(
            {
                "matrix": matrix,
                "rows": n,
                "method": method,
                "solutions": {name: _facts(answer) for name, answer in found.items()},
                "impossible": impossible,
                "output": str(output) if output else None,
                "plot": str(plot) if plot else None,
            }
        )
        _require_converged(found)
        return
    print_table(
        f"{method} on {matrix}: {n:,} rows",
        (
            "preconditioner",
            "coverage",
            "converged",
            "iterations",
            "residual",
            "error",
            "setup",
            "time",
        ),
        [_cells_solve(answer, duration) for answer in found.values()],
    )
    for name, why in impossible.items():
        typer.echo(f"not {name.replace('_', ' ')}: {why}")
    for answer in found.values():
        for name, said in answer.tried:
            if said != "used":
                typer.echo(f"{name.replace('_', ' ')}: {said}")
    _require_converged(found)


def _require_converged(found: dict[str, Any]) -> None:
    """Raise, after all was shown and written, where no solution is as exact as was asked for."""
    if not any(answer.converged for answer in found.values()):
        best = min(found.values(), key=lambda answer: answer.residuals[-1])
        raise FellShort(
            f"solve: not converged after {best.iterations} iterations: the relative residual is "
            f"{best.residuals[-1]:.1e}; give more --maxiter, a larger --rtol or another "
            "--preconditioner"
        )


def _vector(path: Path, n: int) -> Any:
    """A right-hand side from a file."""
    import numpy as np

    if path.suffix == ".npy":
        b = np.load(path)
    elif ".mtx" in path.suffixes:
        from scipy.io import mmread

        b = mmread(path)
        b = b.toarray() if hasattr(b, "toarray") else b
    else:
        b = np.loadtxt(path)
    b = np.asarray(b)
    b = b[:, 0] if b.ndim == 2 else b
    if b.shape != (n,):
        raise ValueError(f"{path}: the right-hand side must have {n} numbers, got {b.shape}")
    return b


def _coverage(answer: Any) -> float | None:
    return getattr(answer.preconditioner, "coverage", None)


def _facts(answer: Any) -> dict[str, Any]:
    return {
        "preconditioner": getattr(answer.preconditioner, "name", None),
        "coverage": _coverage(answer),
        "converged": answer.converged,
        "tried": [list(one) for one in answer.tried],
        "iterations": answer.iterations,
        "residuals": answer.residuals,
        "errors": answer.errors,
        "seconds": answer.seconds,
    }


def _cells_solve(answer: Any, duration: Any) -> tuple[Any, ...]:
    coverage = _coverage(answer)
    made = getattr(answer.preconditioner, "name", "none").replace("_", " ")
    return (
        made,
        "" if coverage is None else f"{coverage:.3f}",
        "yes" if answer.converged else "no",
        answer.iterations,
        f"{answer.residuals[-1]:.1e}",
        "" if answer.errors is None else f"{answer.errors[-1]:.1e}",
        duration(answer.seconds["setup"]),
        duration(answer.seconds["iterations"]),
    )


def _draw_solve(found: dict[str, Any], path: Path, title: str) -> None:
    try:
        import matplotlib
    except ImportError:
        raise ValueError("--plot needs matplotlib: pip install 'matchwood[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from matchwood.io.files import replacing

    errors = any(answer.errors is not None for answer in found.values())
    fig, axes = plt.subplots(1, 2 if errors else 1, figsize=(10 if errors else 6, 4), squeeze=False)
    for name, answer in found.items():
        made = getattr(answer.preconditioner, "name", name).replace("_", " ")
        axes[0, 0].semilogy(answer.residuals, label=made)
        if errors and answer.errors is not None:
            axes[0, 1].semilogy(answer.errors, label=made)
    axes[0, 0].set(xlabel="iterations", ylabel="relative residual")
    if errors:
        axes[0, 1].set(xlabel="iterations", ylabel="forward relative error")
    axes[0, 0].legend()
    fig.suptitle(title)
    fig.tight_layout()
    with replacing(path) as stream:
        fig.savefig(stream, format=path.suffix[1:])
    plt.close(fig)
