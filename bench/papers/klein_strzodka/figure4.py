"""Figure 4 of Klein and Strzodka (2022): BiCGStab with six preconditioners, and multigrid.

``python -m bench.papers.klein_strzodka.figure4 [--engine gpu] [--side 2500] [--data DIR] [A.mtx
...] [--plot FILE] [--json FILE] [--csv FILE]``.  Double precision, right-hand side of x[i] = sin(16
pi i / n).  At full size on the GPU; the default is a smaller size for the CPU.  For every matrix
the table shows the coverage of each preconditioner, the iterations that it took to reduce the
residual to `rtol`, and the forward error then.

On the CPU the multilevel preconditioner is there too, with a flexible method of its own.  And
SciPy's incomplete LU factors (``spilu``) stand beside ours, with their usual settings
(drop_tol 1e-4, fill_factor 10) and with fill_factor 1, which leaves about as many entries as the
matrix has.  In place of a coverage their entries are shown, those of the matrix being 1.

One count says little: for the same preconditioner it scatters by 20 % and more with the right-hand
side.  So the median over that one and some random ones is shown too, and it is by medians that the
blocks are compared with the scalar preconditioner.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import LinearOperator, spilu

import matchwood
from bench import harness, papers
from bench.preconditioners.problems import on, problems, right_hand_sides
from matchwood import engines, preconditioners

KINDS: dict[str, Any] = {
    "Jacobi": preconditioners.jacobi,
    "tridiagonal": preconditioners.tridiagonal,
    "algebraic": lambda A: preconditioners.algebraic_tridiagonal(A, ties="index"),
    "block": preconditioners.algebraic_block_tridiagonal,
    "block, m=1": lambda A: preconditioners.algebraic_block_tridiagonal(A, period=1),
    "block, m=5": lambda A: preconditioners.algebraic_block_tridiagonal(A, period=5),
}


class Incomplete(LinearOperator):  # type: ignore[misc]
    """SciPy's incomplete LU factors as an operator, and how much they fill in."""

    def __init__(self, A: Any, **options: Any) -> None:
        S = sp.csc_matrix(A)
        self.factors = spilu(S, **options)
        self.fill = (self.factors.L.nnz + self.factors.U.nnz) / S.nnz
        self.coverage = None
        super().__init__(np.float64, S.shape)

    def _matvec(self, x: Any) -> Any:
        return self.factors.solve(np.ravel(x))


# Not in the paper.  With a symmetric matrix its method is flexible CG, of one product with the
# matrix an iteration, where BiCGStab has two; else it is a flexible BiCGStab.
MULTILEVEL: dict[str, Any] = {"multilevel": preconditioners.multilevel}

INCOMPLETE: dict[str, Any] = {
    "ILU": Incomplete,
    "ILU, fill 1": lambda A: Incomplete(A, fill_factor=1),
}


def kinds(engine: str) -> dict[str, Any]:
    """Names and makers; some only on the CPU."""
    return {**KINDS, **MULTILEVEL, **INCOMPLETE} if engine == "cpu" else KINDS


def measure(
    A: Any, rtol: float, maxiter: int, sides: int, only: Sequence[str] | None = None
) -> dict[str, Any]:
    """What happens with each preconditioner; those that do not exist are left out."""
    G = matchwood.graph(A)
    (x, b), *others = right_hand_sides(A, sides)
    rows: dict[str, Any] = {}
    for name, make in kinds(G.engine).items():
        if only is not None and name not in only:
            continue
        try:
            M = make(A if name in INCOMPLETE else G)
        except (ValueError, RuntimeError) as error:  # singular, or a zero on the diagonal
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
        if name in INCOMPLETE:
            rows[name]["fill"] = M.fill
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
    names = _names(results)
    for name in names:
        table.add_column(name, justify="right")
    for problem, rows in results.items():
        cells = []
        for name in names:
            row = rows.get(name)
            if row is None:
                cells.append("")
                continue
            error = f"  {row['errors'][-1]:.0e}" if row.get("errors") else ""
            cells.append(cell(row, "  ") + error)
        table.add_row(problem, *cells)
    Console(width=160).print(table)
    for what in ("median", "iterations"):
        ratios = {problem: _ratio(rows, what) for problem, rows in results.items()}
        known = {problem: ratio for problem, ratio in ratios.items() if ratio is not None}
        for worst in sorted(known, key=known.__getitem__)[-1:]:
            print(f"block / algebraic, {what}: at most {known[worst]:.2f} ({worst})")


def _names(results: dict[str, dict[str, Any]]) -> list[str]:
    """The preconditioners that were tried."""
    return [
        name
        for name in (*KINDS, *MULTILEVEL, *INCOMPLETE)
        if any(name in rows for rows in results.values())
    ]


def cell(row: dict[str, Any], between: str = ", ") -> str:
    """Coverage (of ILU: fill), iterations, and in brackets their median."""
    if "error" in row:
        return "singular"
    steps = f"{row['iterations']} ({row['median']:g})"
    if not row["converged"]:
        steps = f"> {row['iterations']}"
    if "fill" in row:
        return f"x {row['fill']:.1f}{between}{steps}"
    return f"{row['coverage']:.2f}{between}{steps}" if row["coverage"] else steps


def brief(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What does not depend on the load of the machine, without the histories."""
    left_out = ("residuals", "errors", "seconds")
    return {
        problem: {
            name: {key: value for key, value in row.items() if key not in left_out}
            for name, row in rows.items()
        }
        for problem, rows in results.items()
    }


def write_csv(results: dict[str, dict[str, Any]], path: Path) -> None:
    """The table of the page."""
    names = _names(results)
    rows = [
        [problem, *(cell(row[name]) if name in row else None for name in names)]
        for problem, row in results.items()
    ]
    papers.table(path, ["matrix", *names], rows)


def _ratio(rows: dict[str, Any], what: str) -> float | None:
    """Of the blocks' iterations to the scalar preconditioner's; None where that does not do."""
    block, scalar = rows.get("block", {}), rows.get("algebraic", {})
    if not scalar.get("converged"):
        return None
    return float(block[what]) / max(scalar[what], 1) if block.get("converged") else math.inf


def plot(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Residual (solid) and forward error (dotted) by iteration, a panel a matrix."""
    plt = harness.pyplot()
    columns = 2 if len(results) <= 4 else 4
    rows = -(-len(results) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.7 * rows), squeeze=False)
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    for ax, (problem, found) in zip(axes.flat, results.items(), strict=False):
        for k, name in enumerate(_names(results)):
            if "error" not in found.get(name, {"error": "not tried"}):
                ax.semilogy(found[name]["residuals"], color=f"C{k}", lw=1.2, label=name)
                ax.semilogy(found[name]["errors"], color=f"C{k}", lw=0.8, ls=":")
        ax.set_title(problem, fontsize=9)
        ax.set_ylim(top=1e3)
        ax.tick_params(labelsize=7)
    axes[0, 0].legend(fontsize=6)
    fig.supxlabel("iterations", fontsize=9)
    fig.supylabel("relative residual (solid), forward error (dotted)", fontsize=9)
    fig.tight_layout()
    harness.save(fig, path)


def results(
    made: dict[str, Any], rtol: float, maxiter: int, sides: int, only: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Every problem."""
    return {name: measure(make(), rtol, maxiter, sides, only) for name, make in made.items()}


def run() -> list[harness.Result]:
    """The smaller size, for `bench.run`."""
    found = results(problems(80, (16, 24, 24), "cpu"), 1e-8, 500, 5)
    show(found)
    return [{"title": f"BiCGStab, {name}", "rows": rows} for name, rows in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.papers.klein_strzodka.figure4")
    parser.add_argument("files", nargs="*", type=Path, metavar="A.mtx", help="further matrices")
    parser.add_argument("--data", type=Path, default=harness.DATA, help="folder with matrices")
    parser.add_argument("--only", nargs="*", help="of all just these")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--side", type=int, default=150, help="of the aniso grids")
    parser.add_argument(
        "--shape", type=int, nargs=3, default=(24, 40, 40), help="of the other grid"
    )
    parser.add_argument("--kinds", nargs="*", help="of the preconditioners just these")
    parser.add_argument("--rtol", type=float, default=1e-8)
    parser.add_argument("--maxiter", type=int, default=2000)
    parser.add_argument("--sides", type=int, default=9, help="right-hand sides of the median")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--brief", action="store_true", help="no histories in the JSON file")
    parser.add_argument("--csv", type=Path, help="write the table there")
    parser.add_argument("--draw", type=Path, help="only draw what this JSON file has")
    options = parser.parse_args()
    if options.draw:
        known = json.loads(options.draw.read_text())["results"]
        if options.plot:
            plot(known, options.plot)
        if options.csv:
            write_csv(known, options.csv)
        return
    made = problems(options.side, tuple(options.shape), options.engine, options.data)
    made |= {
        papers.stem(path): lambda path=path: on(papers.read(path).astype(float), options.engine)
        for path in options.files
    }
    made = {name: make for name, make in made.items() if name in (options.only or made)}
    found = results(made, options.rtol, options.maxiter, options.sides, options.kinds)
    show(found)
    if options.csv:
        write_csv(found, options.csv)
    if options.plot:
        plot(found, options.plot)
    if options.json:
        papers.add(options.json, brief(found) if options.brief else found, options.engine)


if __name__ == "__main__":
    main()
