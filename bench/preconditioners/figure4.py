"""Figure 4 of Klein and Strzodka (2022): BiCGStab with six preconditioners.

``python -m bench.preconditioners.figure4 [--engine gpu] [--side 2500] [--plot FILE]``.  Double
precision, right-hand side of x[i] = sin(16 pi i / n).  At full size on the GPU; the default is a
smaller size for the CPU.  For every matrix the table shows the coverage of each preconditioner, the
iterations that it took to reduce the residual to `rtol`, and the forward error then.

One count says little: for the same preconditioner it scatters by 20 % and more with the right-hand
side.  So the median over that one and some random ones is shown too, and it is by medians that the
blocks are compared with the scalar preconditioner.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import matchwood
from bench import harness
from bench.preconditioners.problems import problems, right_hand_sides
from matchwood import engines, preconditioners

KINDS: dict[str, Any] = {
    "Jacobi": preconditioners.jacobi,
    "tridiagonal": preconditioners.tridiagonal,
    "algebraic": lambda A: preconditioners.algebraic_tridiagonal(A, ties="index"),
    "block": preconditioners.algebraic_block_tridiagonal,
    "block, m=1": lambda A: preconditioners.algebraic_block_tridiagonal(A, period=1),
    "block, m=5": lambda A: preconditioners.algebraic_block_tridiagonal(A, period=5),
}


def measure(A: Any, rtol: float, maxiter: int, sides: int) -> dict[str, Any]:
    """What happens with each preconditioner; those that do not exist are left out."""
    G = matchwood.graph(A)
    (x, b), *others = right_hand_sides(A, sides)
    rows: dict[str, Any] = {}
    for name, make in KINDS.items():
        try:
            M = make(G)
        except ValueError as error:  # singular, or a zero on the diagonal
            rows[name] = {"error": str(error)}
            continue
        found = matchwood.solve(G, b, preconditioner=M, rtol=rtol, maxiter=maxiter, true_solution=x)
        counts = [found.iterations]
        for _, other in others if found.info == 0 else ():
            again = matchwood.solve(G, other, preconditioner=M, rtol=rtol, maxiter=maxiter)
            counts.append(again.iterations if again.info == 0 else maxiter)
        rows[name] = {
            "coverage": M.coverage,
            "converged": found.info == 0 and found.converged,
            "iterations": found.iterations,
            "median": statistics.median(counts),
            "residuals": _three_digits(found.residuals),
            "errors": _three_digits(found.errors),
            "seconds": found.seconds,
        }
        if G.engine == "gpu":
            engines.cupy().get_default_memory_pool().free_all_blocks()
    return rows


def _three_digits(values: Any) -> list[float]:
    return [float(f"{value:.3g}") for value in values.tolist()]


def show(results: dict[str, dict[str, Any]]) -> None:
    """Coverage, iterations (median) and error of everything; blocks against scalar."""
    table = Table(
        title="BiCGStab: coverage, iterations (median), forward error", title_justify="left"
    )
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
            steps = f"{row['iterations']} ({row['median']:g})"
            if not row["converged"]:
                steps = f"> {row['iterations']}"
            cells.append(f"{row['coverage']:.2f}  {steps}  {row['errors'][-1]:.0e}")
        table.add_row(problem, *cells)
    Console(width=160).print(table)
    for what in ("median", "iterations"):
        ratios = {problem: _ratio(rows, what) for problem, rows in results.items()}
        known = {problem: ratio for problem, ratio in ratios.items() if ratio is not None}
        for worst in sorted(known, key=known.__getitem__)[-1:]:
            print(f"block / algebraic, {what}: at most {known[worst]:.2f} ({worst})")


def _ratio(rows: dict[str, Any], what: str) -> float | None:
    """Of the blocks' iterations to the scalar preconditioner's; None where that does not do."""
    block, scalar = rows["block"], rows["algebraic"]
    if not scalar.get("converged"):
        return None
    return float(block[what]) / max(scalar[what], 1) if block.get("converged") else math.inf


def plot(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Residual (solid) and forward error (dotted) by iteration, a panel a matrix."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 2 if len(results) <= 4 else 4
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
    fig.savefig(path, dpi=150)
    plt.close(fig)


def results(
    side: int, shape: tuple[int, ...], engine: str, rtol: float, maxiter: int, sides: int
) -> Any:
    """Every problem."""
    return {
        name: measure(make(), rtol, maxiter, sides)
        for name, make in problems(side, shape, engine).items()  # type: ignore[arg-type]
    }


def run() -> list[harness.Result]:
    """The smaller size, for `bench.run`."""
    found = results(80, (16, 24, 24), "cpu", 1e-8, 500, 5)
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
    parser.add_argument("--sides", type=int, default=9, help="right-hand sides of the median")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", type=Path, help="only draw what this JSON file has")
    options = parser.parse_args()
    if options.draw:
        plot(json.loads(options.draw.read_text())["results"], options.plot)
        return
    found = results(
        options.side, tuple(options.shape), options.engine, options.rtol, options.maxiter,
        options.sides,
    )  # fmt: skip
    show(found)
    if options.plot:
        plot(found, options.plot)
    if options.json:
        options.json.write_text(
            json.dumps({"environment": harness.environment(), "results": found})
        )


if __name__ == "__main__":
    main()
