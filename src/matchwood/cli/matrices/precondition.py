"""`matchwood precondition`: what each preconditioner of a matrix contains, and what it costs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.options import Engine, Graph, Json, Read, Rng, Threads

KINDS = ("jacobi", "tridiagonal", "algebraic_tridiagonal", "algebraic_block_tridiagonal")


def command(
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
        typer.Option(
            "--period", "-m", min=1, help="Charges of the factors are off in one of so many rounds."
        ),
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
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import duration, print_json, print_table
    from matchwood.cli.progress import progress

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
        [_cells(name, row, duration) for name, row in rows.items()],
    )


def _options(name: str, given: dict[str, Any], period: int | None) -> dict[str, Any]:
    """Those of a factor, for the preconditioners that have one."""
    if not name.startswith("algebraic"):
        return {}
    given = {**given, "period": period}
    return {option: value for option, value in given.items() if value is not None}


def _measure(G: Any, name: str, options: dict[str, Any], only: bool) -> dict[str, Any]:
    """Set up twice, so that compiling does not count; apply once to ones.

    What this matrix does not allow is told in the table, unless it is all that was asked for.
    """
    import numpy as np

    from matchwood import engines, preconditioners
    from matchwood.report.timing import clock

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
        if only or not (singular or name == "jacobi"):  # jacobi: a zero on the diagonal
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


def _cells(name: str, row: dict[str, Any], duration: Any) -> tuple[str, ...]:
    title = name.replace("_", " ")
    if "error" in row:
        return title, "", "", "", "", row["error"]
    phases = ", ".join(f"{phase} {duration(taken)}" for phase, taken in row["phases"].items())
    times = (duration(row["setup"]), duration(row["application"]))
    definite = {True: "yes", False: "no", None: ""}[row["definite"]]
    return title, f"{row['coverage']:.3f}", definite, *times, phases
