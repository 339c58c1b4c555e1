"""`matchwood solve`: a sparse linear system by a preconditioned Krylov method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.errors import FellShort
from matchwood.cli.options import Engine, Graph, Json, Output, Read, Threads

PERIODS = 8  # of the sine that is the solution where no right-hand side is given


def command(
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
            help="auto, none, all, jacobi, tridiagonal, algebraic_tridiagonal or "
            "algebraic_block_tridiagonal.  With all they are compared.",
        ),
    ] = "auto",
    method: Annotated[
        str, typer.Option("--method", help="auto, bicgstab, cg, gmres or minres.")
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
    from matchwood.cli import results

    results.check_suffix(output)
    if plot is not None:
        if plot.suffix not in (".svg", ".png", ".pdf"):
            raise ValueError(f"--plot {plot}: the name must end in .svg, .png or .pdf")
        results.check_place(plot, "--plot")
    import numpy as np

    import matchwood
    from matchwood import engines
    from matchwood.cli.load import load
    from matchwood.cli.output import duration, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.krylov import AUTO, PRECONDITIONERS

    method = AUTO if method == "auto" else method

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
    if output is not None:
        best = min(found.values(), key=lambda answer: answer.residuals[-1])
        results.write(output, {"x": engines.moved(best.x, "cpu")}, {})
    if plot is not None:
        _draw(found, plot, f"{method}, {matrix}")
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
        [_cells(name, answer, duration) for name, answer in found.items()],
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


def _cells(name: str, answer: Any, duration: Any) -> tuple[Any, ...]:
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


def _draw(found: dict[str, Any], path: Path, title: str) -> None:
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
