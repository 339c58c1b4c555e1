"""What other settings of the rounds reach, and what M_max depends on; for tables.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import matchwood
from matchwood import generators
from matchwood.factors import degree_factor

# aniso2 with the rows of the grid numbered upwards
MIRRORED = np.array([[-1.0, -0.2, -0.1], [-0.2, 3.0, -0.2], [-0.1, -0.2, -1.0]])

# Tried for five rounds: when the charges are off.
SETTINGS = {
    "period=5, uncharged=0": {"period": 5, "uncharged": 0},
    "period=5, uncharged=4": {"period": 5, "uncharged": 4},
    "period=2, uncharged=0": {"period": 2, "uncharged": 0},
    "period=3, uncharged=0": {"period": 3, "uncharged": 0},
    "period=1": {"period": 1, "uncharged": 0},
}


def five_rounds(matrices: dict[str, Any]) -> Table:
    """What other settings reach in five rounds."""
    table = Table(title="Coverage in five rounds", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("ties")
    for name in SETTINGS:
        table.add_column(name, justify="right")
    for name, A in matrices.items():
        G = matchwood.graph(A)
        for n in (1, 2):
            for ties in ("index", "hash"):
                cells = [
                    degree_factor(G, n, ties=ties, **how).coverage for how in SETTINGS.values()
                ]
                best = max(cells)
                texts = [f"[bold]{c:.4f}[/bold]" if c == best else f"{c:.4f}" for c in cells]
                table.add_row(f"{name}, n={n}" if ties == "index" else "", ties, *texts)
    return table


def orders_of_diagonals(side: int = 200) -> dict[str, int]:
    """M_max of aniso2 without charges, its anti-diagonals numbered one by one in some order."""
    A = generators.aniso(2, (side, side), dtype=np.float32)
    i, j = np.divmod(np.arange(side * side), side)
    diagonal = i + j
    found = {}
    for order, key in {
        "as they lie": diagonal,
        "wrapped round": diagonal % side,
        "every third first": diagonal % 3 * 2 * side + diagonal,
    }.items():
        perm = np.lexsort((i, diagonal, key))
        found[order] = degree_factor(
            A[perm][:, perm], 2, period=1, rounds=None, ties="index"
        ).rounds
    return found


def mirrored(side: int) -> int:
    """M_max of aniso2 without charges when the rows of the grid are numbered upwards."""
    A = generators.stencil(MIRRORED, (side, side), dtype=np.float32)
    return degree_factor(A, 2, period=1, rounds=None, ties="index").rounds


def show(matrices: dict[str, Any], side: int, console: Console) -> None:
    console.print(five_rounds(matrices))
    console.print(
        f"M_max of aniso2 without charges, grid rows numbered upwards: {mirrored(side)} "
        "(paper, 2500 x 2500: 1251)."
    )
    console.print(
        "That of aniso3 depends on the order in which the anti-diagonals are numbered, which the "
        "paper does not give (55). On 200 x 200 points: "
        + ", ".join(f"{order} {rounds}" for order, rounds in orders_of_diagonals().items())
        + "."
    )
