"""Tables 3, 4 and 5 of Klein and Strzodka (ICPP 2022), beside the figures that they print.

``python -m bench.papers.klein_strzodka.tables [--data DIR] [A.mtx ...] [--json FILE] [--out
FOLDER]``: aniso 1 to 3 on 2500 x 2500 points, a 1000 x 1000 grid with equal weights, which stands
for ecology1 where that is not in DIR, and those of the paper's other matrices that are there; then
any further files.  ``--side 200 --grid 100`` makes the generated ones smaller (then M_max, which
grows with the grid, is another); ``--engine gpu`` runs them there; ``--settings`` tries other
settings as well.

Coverages are compared as printed, with two digits, and may differ by 0.01.  M_max depends on which
of several equal edges a vertex prefers, so both rules are shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import matchwood
from bench import harness, papers
from bench.papers.klein_strzodka import settings
from bench.papers.klein_strzodka.printed import PAPER
from matchwood import generators, preconditioners
from matchwood.factors import coverage_of_order, degree_factor

TOLERANCE = 0.0101  # the paper prints two digits
SIZES = (1, 2, 3, 4)
TIES = ("index", "hash")
FIVE_POINT = np.array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]])
CONFIGURATIONS = {
    "plain": ("no charges", {"period": 1, "uncharged": 0}),
    "off_at_0": ("charges off at 0, 5, ..", {"period": 5, "uncharged": 0}),
    "off_at_1": ("charges off at 1, 6, ..", {"period": 5, "uncharged": 1}),
}


def generated(side: int, grid: int, engine: str = "cpu") -> dict[str, Callable[[], Any]]:
    """Makers of four matrices, in single precision as in the paper; a grid stands for ecology1."""
    options = {"dtype": np.float32, "engine": engine}
    made: dict[str, Callable[[], Any]] = {
        f"aniso{kind}": lambda kind=kind: generators.aniso(kind, (side, side), **options)
        for kind in (1, 2, 3)
    }
    made["ecology1"] = lambda: generators.stencil(FIVE_POINT, (grid, grid), **options)
    return made


def measure(A: Any, engine: str) -> dict[str, Any]:
    """The row of a matrix in all three tables; the letters of the rounds are the paper's."""
    G = matchwood.graph(A).on(engine)
    symmetric = abs(A - A.T).nnz == 0
    rounds: dict[str, Any] = {}
    for key, (_, how) in CONFIGURATIONS.items():
        rounds[key] = {}
        for ties in TIES:
            five = degree_factor(G, 2, ties=ties, **how)
            end = degree_factor(G, 2, ties=ties, rounds=None, **how)
            rounds[key][ties] = (five.coverage, end.coverage, end.rounds)
    return {
        "symmetric": symmetric,
        "rows": G.n,
        "entries": int(A.nnz),
        "c_id": coverage_of_order(G),
        # of equal edges the paper's rounds take them by column, its sort in no particular order
        "parallel": [degree_factor(G, n, ties="index").coverage for n in SIZES],
        "parallel, hash": [degree_factor(G, n, ties="hash").coverage for n in SIZES],
        "greedy": [degree_factor(G, n, method="greedy", ties="hash").coverage for n in SIZES],
        "block": [_block(G, period) for period in (1, 5)],
        "rounds": rounds,
    }


def _block(G: Any, period: int) -> float:
    M = preconditioners.algebraic_block_tridiagonal(G, period=period, allow_singular=True)
    return float(M.coverage)


def cell(found: float | None, printed: float | None) -> str:
    """Ours, and the paper's in brackets."""
    ours = "-" if found is None else f"{found:.2f}"
    return ours if printed is None else f"{ours} ({printed:.2f})"


def count(found: int | None, printed: int | None) -> str:
    ours = "-" if found is None else str(found)
    return ours if printed is None else f"{ours} ({printed})"


def names(results: dict[str, Any]) -> list[str]:
    """The paper's matrices, then the others that were measured."""
    return [*PAPER, *(name for name in results if name not in PAPER)]


def table_3(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    head = ["matrix", "symmetric", "rows", "entries", "entries a row", "here"]
    rows = []
    for name in names(results):
        found, paper = results.get(name), PAPER.get(name)
        source = found or {"symmetric": paper.symmetric, "rows": paper.n, "entries": paper.entries}
        here = "not at hand"
        if found is not None:
            same = paper is None or (found["rows"], found["entries"]) == (paper.n, paper.entries)
            here = found.get("instead") or ("yes" if same else "another size")
        rows.append(
            [
                name,
                "yes" if source["symmetric"] else "no",
                f"{source['rows']:,}",
                f"{source['entries']:,}",
                f"{source['entries'] / source['rows']:.2f}",
                here,
            ]
        )
    return head, rows


def table_4(results: dict[str, Any], ties: str = "index") -> tuple[list[str], list[list[str]]]:
    """[0,2]-factors: coverage after five rounds and at the end, and how many rounds that is."""
    head = ["matrix"]
    for title, _ in CONFIGURATIONS.values():
        head += [f"{title}: c(5)", "c(M_max)", "M_max"]
    rows = []
    for name in names(results):
        cells = [name]
        for key in CONFIGURATIONS:
            found = results[name]["rounds"][key][ties] if name in results else (None,) * 3
            printed = getattr(PAPER[name], key) if name in PAPER else (None,) * 3
            cells += [cell(found[k], printed[k]) for k in (0, 1)]
            cells.append(count(found[2], printed[2]))
        rows.append(cells)
    return head, rows


def table_5(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Coverages for n = 1 .. 4 after five rounds, of the greedy factor, and of the blocks."""
    head = ["matrix", "c_id"]
    for n in SIZES:
        head += [f"n={n}", "greedy"]
    head += ["blocks, m=1", "m=5"]
    rows = []
    for name in names(results):
        pairs = zip(_numbers(results.get(name)), _numbers(_as_row(name)), strict=True)
        rows.append([name, *(cell(ours, theirs) for ours, theirs in pairs)])
    return head, rows


def _as_row(name: str) -> dict[str, Any] | None:
    return PAPER[name]._asdict() if name in PAPER else None


def _numbers(row: dict[str, Any] | None) -> list[float | None]:
    """The coverages of table 5 in the order of its columns."""
    if row is None:
        return [None] * 11
    found = [row["c_id"]]
    for parallel, greedy in zip(row["parallel"], row["greedy"], strict=True):
        found += [parallel, greedy]
    return [*found, *row["block"]]


def far_from_the_paper(results: dict[str, Any]) -> list[str]:
    """The coverages that differ by more than 0.01 from the paper's."""
    far = []
    for name in results.keys() & PAPER.keys():
        row, paper = results[name], PAPER[name]
        heads = table_5({})[0][1:]
        for head, ours, theirs in zip(heads, _numbers(row), _numbers(_as_row(name)), strict=True):
            if ours is not None and theirs is not None:
                far += _if_far(f"{name}, table 5, {head}", ours, theirs)
        for key, (title, _) in CONFIGURATIONS.items():
            for k, what in enumerate(("c(5)", "c(M_max)")):
                ours, theirs = row["rounds"][key]["index"][k], getattr(paper, key)[k]
                far += _if_far(f"{name}, table 4, {title}, {what}", ours, theirs)
    return sorted(far)


def _if_far(what: str, ours: float, theirs: float) -> list[str]:
    far = abs(round(ours, 2) - theirs) > TOLERANCE
    return [f"{what}: {ours:.3f}, paper {theirs:.2f}"] if far else []


def draw(results: dict[str, Any], path: Path) -> None:
    """Table 5 of the matrices at hand: bars are ours, marks the paper's."""
    plt = harness.pyplot()
    shown = [name for name in names(results) if name in results]
    fig, ax = plt.subplots(figsize=(8, 3.4))
    at, width = np.arange(len(shown)), 0.8 / 11
    ways = [f"n={n}, {how}" for n in SIZES for how in ("rounds", "greedy")]
    colours = plt.get_cmap("tab20")
    for k, label in enumerate(("order of the matrix", *ways, "blocks, m=1", "blocks, m=5")):
        ours = [_numbers(results[name])[k] for name in shown]
        ax.bar(at + (k - 5) * width, ours, width, color=colours(k), label=label)
        marks = [(x, _numbers(_as_row(name))[k]) for x, name in zip(at, shown, strict=True)]
        marks = [(x + (k - 5) * width, value) for x, value in marks if value is not None]
        if marks:
            ax.plot(*zip(*marks, strict=True), "k_", markersize=5)
    ax.set(xticks=at, ylabel="coverage", ylim=(0, 1.05))
    ax.set_xticklabels(shown)
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    harness.save(fig, path)


def show(results: dict[str, Any], console: Console) -> int:
    """Print the tables; the number of figures that are not within 0.01 of the paper's."""
    parts = {
        "Table 3: the matrices": table_3(results),
        "Table 4: [0,2]-factors, ties by index, ours (paper)": table_4(results),
        "Table 4, ties by hash": table_4(results, "hash"),
        "Table 5: coverage, ours (paper)": table_5(results),
    }
    for title, (head, rows) in parts.items():
        table = Table(title=title, title_justify="left", title_style="bold")
        for name in head:
            table.add_column(name, justify="left" if name == "matrix" else "right")
        for row in rows:
            if row[0] in results:
                table.add_row(*row)
        console.print(table)
    console.print("not at hand: " + ", ".join(n for n in PAPER if n not in results))
    far = far_from_the_paper(results)
    console.print(f"{len(far) or 'No'} coverages differ by more than 0.01 from the paper's.")
    for line in far:
        console.print("  " + line, highlight=False)
    return len(far)


def write(results: dict[str, Any], folder: Path) -> None:
    """The tables and the picture of the pages."""
    for number, (head, rows) in (
        (3, table_3(results)), (4, table_4(results)), (5, table_5(results)),
    ):  # fmt: skip
        papers.table(folder / f"factors_table_{number}.csv", head, rows)
    draw(results, folder / "factors_table_5.svg")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; the number of figures that are not within 0.01 of the paper's."""
    parser = argparse.ArgumentParser(prog="bench.papers.klein_strzodka.tables")
    papers.options(parser)
    parser.add_argument("--side", type=int, default=2500, help="of the aniso grids")
    parser.add_argument("--grid", type=int, default=1000, help="side of the 5-point grid")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--settings", action="store_true", help="try other settings as well")
    given = parser.parse_args(arguments)
    console = Console(width=170)
    results: dict[str, Any] = papers.load(given.draw) if given.draw else {}
    if not given.draw:
        made = generated(given.side, given.grid)
        for name, make in papers.matrices(given, PAPER, made).items():
            results[name] = measure(make(), given.engine)
            if make is made.get("ecology1"):
                results[name]["instead"] = "a grid of equal weights instead"
            if given.json:
                results = papers.add(given.json, {name: results[name]})
    if given.settings:
        graphs = {name: make() for name, make in generated(given.side, given.grid).items()}
        settings.show(graphs, given.side, console)
    if given.out:
        write(results, given.out)
    return show(results, console)


if __name__ == "__main__":
    main()
