"""Figure 4 of Klein and Strzodka (2022): BiCGStab with five preconditioners.

``python -m bench.preconditioners.figure4 [--engine gpu] [--side 2500] [--plot FILE]``.  Double
precision, right-hand side of x[i] = sin(16 pi i / n).  At full size on the GPU; the default is a
smaller size for the CPU.  For every matrix the table shows the coverage of each preconditioner, the
iterations that it took to reduce the residual to `rtol`, and the forward error then.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import matchwood
from bench import harness
from bench.preconditioners.problems import problems, right_hand_side
from matchwood import engines, preconditioners

KINDS: dict[str, Any] = {
    "Jacobi": preconditioners.jacobi,
    "tridiagonal": preconditioners.tridiagonal,
    "algebraic": preconditioners.algebraic_tridiagonal,
    "block, m=1": lambda A: preconditioners.algebraic_block_tridiagonal(A, m=1),
    "block, m=5": lambda A: preconditioners.algebraic_block_tridiagonal(A, m=5),
}


def measure(A: Any, rtol: float, maxiter: int) -> dict[str, Any]:
    """What happens with each preconditioner; those that do not exist are left out."""
    G = matchwood.graph(A)
    x, b = right_hand_side(A)
    rows: dict[str, Any] = {}
    for name, make in KINDS.items():
        try:
            M = make(G)
        except ValueError as error:  # singular, or a zero on the diagonal
            rows[name] = {"error": str(error)}
            continue
        found = matchwood.solve(G, b, preconditioner=M, rtol=rtol, maxiter=maxiter, true_solution=x)
        rows[name] = {
            "coverage": M.coverage,
            "converged": found.converged,
            "iterations": found.iterations,
            "residuals": found.residuals.tolist(),
            "errors": found.errors.tolist(),
            "seconds": found.seconds,
        }
        if G.engine == "gpu":
            engines.cupy().get_default_memory_pool().free_all_blocks()
    return rows


def show(results: dict[str, dict[str, Any]]) -> None:
    """Coverage, iterations and error of everything."""
    table = Table(title="BiCGStab: coverage, iterations, forward error", title_justify="left")
    table.add_column("")
    for name in KINDS:
        table.add_column(name, justify="right")
    for problem, rows in results.items():
        cells = []
        for name in KINDS:
            row = rows[name]
            if "error" in row:
                cells.append("singular")
                continue
            steps = str(row["iterations"]) if row["converged"] else f"> {row['iterations']}"
            cells.append(f"{row['coverage']:.2f}  {steps}  {row['errors'][-1]:.0e}")
        table.add_row(problem, *cells)
    Console(width=140).print(table)


def plot(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Residual (solid) and forward error (dotted) by iteration, a panel a matrix."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 4
    rows = -(-len(results) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.7 * rows), squeeze=False)
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    for ax, (problem, found) in zip(axes.flat, results.items(), strict=False):
        for k, name in enumerate(KINDS):
            if "error" not in found[name]:
                ax.semilogy(found[name]["residuals"], color=f"C{k}", lw=1.2, label=name)
                ax.semilogy(found[name]["errors"], color=f"C{k}", lw=0.8, ls=":")
        ax.set_title(problem, fontsize=9)
        ax.set_ylim(top=1e3)
        ax.tick_params(labelsize=7)
    axes[0, 0].legend(fontsize=6)
    fig.supxlabel("iterations", fontsize=9)
    fig.supylabel("relative residual (solid), forward error (dotted)", fontsize=9)
    fig.tight_layout()
    fig.savefig(path)
    plt.close(fig)


def results(side: int, shape: tuple[int, ...], engine: str, rtol: float, maxiter: int) -> Any:
    """Every problem."""
    return {
        name: measure(make(), rtol, maxiter)
        for name, make in problems(side, shape, engine).items()  # type: ignore[arg-type]
    }


def run() -> list[harness.Result]:
    """The smaller size, for `bench.run`."""
    found = results(80, (16, 24, 24), "cpu", 1e-8, 500)
    show(found)
    return [{"title": f"BiCGStab, {name}", "rows": rows} for name, rows in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.preconditioners.figure4")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--side", type=int, default=150, help="of the aniso grids")
    parser.add_argument(
        "--shape", type=int, nargs=3, default=(24, 40, 40), help="of the other grid"
    )
    parser.add_argument("--rtol", type=float, default=1e-8)
    parser.add_argument("--maxiter", type=int, default=2000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = results(
        options.side, tuple(options.shape), options.engine, options.rtol, options.maxiter
    )
    show(found)
    if options.plot:
        plot(found, options.plot)
    if options.json:
        options.json.write_text(
            json.dumps({"environment": harness.environment(), "results": found})
        )


if __name__ == "__main__":
    main()
