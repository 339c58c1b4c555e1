"""`matchwood order`: rows and columns of a matrix in a better order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads

DOTS = 200_000  # entries of a spy plot that are drawn as dots; of more, the density is shown


def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="rcm (reverse Cuthill-McKee) or cm (not reversed).")
    ] = "rcm",
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            help="auto, serial, leveled, unordered, batch_basic or batch: one order, six ways.",
        ),
    ] = "auto",
    start: Annotated[
        list[str] | None,
        typer.Option("-s", "--start", help="Start a component here; may be repeated."),
    ] = None,
    permuted: Annotated[
        Path | None,
        typer.Option("--permuted", metavar="FILE", help="Write the matrix in the new order."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the entries before and after."),
    ] = None,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Order a matrix so that its entries lie near the diagonal, and measure what that gives.

    A result file has, for each new row, the old row that comes there.
    """
    from matchwood.cli import results

    results.check_suffix(output)
    for option, path in (("--permuted", permuted), ("--plot", plot)):
        if path is not None:
            results.check_place(path, option)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    if method not in ("rcm", "cm"):
        raise ValueError(f"--method must be one of rcm, cm, got {method!r}")
    loaded = load(graph, compact=compact, read=read)
    starts = [loaded.vertex(text) for text in start] if start else None
    with clock() as taken, progress("ordering"):
        found = matchwood.rcm_ordering(
            loaded.matrix,
            start=starts,
            method=algorithm,
            reverse=method == "rcm",
            engine=engine,
            threads=threads,
        )
    if check:
        with progress("checking"):
            matchwood.check.check_rcm_order(
                loaded.matrix, found, start=starts, reverse=method == "rcm"
            )
    if output is not None:
        results.write(output, {"perm": found.perm}, asdict(found.after), ids=None)
    if permuted is not None or plot is not None:
        B = matchwood.permute(loaded.matrix, found.perm, threads=threads)
        if permuted is not None:
            matchwood.io.write(permuted, B)
        if plot is not None:
            _draw(loaded.matrix, B, found, plot)
    counters = dict(found.counters)
    before, after = asdict(found.before), asdict(found.after)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.perm),
                "method": method,
                "before": before,
                "after": after,
                "counters": counters,
                "checked": check,
                "seconds": {
                    "load": asdict(loaded.clock),
                    "order": asdict(taken),
                    "phases": dict(found.seconds),
                },
                "output": str(output) if output else None,
                "permuted": str(permuted) if permuted else None,
                "plot": str(plot) if plot else None,
            }
        )
        return
    print_facts(
        f"order of {graph}",
        {
            "vertices": len(found.perm),
            "components": counters["components"],
            "levels": counters["levels"],
            "searches for starts": counters["searches"],
            "algorithm": counters["method"],
            "loading": loaded.clock,
            "time, measures included": taken,
            "checked": "right" if check else None,
            "written": ", ".join(str(p) for p in (output, permuted, plot) if p) or None,
        },
    )
    print_table(
        "measures",
        ("", "before", "after", "ratio"),
        [
            (name.replace("_", " "), value, after[name], value / max(after[name], 1e-9))
            for name, value in before.items()
        ],
    )


def _draw(A: Any, B: Any, found: Any, path: Path) -> None:
    """Spy plots before and after, side by side."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            f"--plot {path}: drawing needs matplotlib, pip install 'matchwood[plot]'"
        ) from None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots(1, 2)
    measured = (("before", A, found.before), ("after", B, found.after))
    for ax, (when, matrix, numbers) in zip(axes, measured, strict=True):
        coo = matrix.tocoo()
        if coo.nnz <= DOTS:
            size = max(0.05, min(4.0, 160 / max(1, coo.shape[0])))
            ax.plot(coo.col, coo.row, "s", markersize=size, linestyle="none", mew=0)
            ax.set(xlim=(-0.5, coo.shape[1] - 0.5), ylim=(coo.shape[0] - 0.5, -0.5))
        else:
            ax.hist2d(coo.col, coo.row, bins=400, cmap="Blues", norm=matplotlib.colors.LogNorm())
            ax.invert_yaxis()
        ax.set(aspect="equal", title=f"{when}: bandwidth {numbers.bandwidth:,}")
        ax.set(xticks=[], yticks=[])
    from matchwood.io.files import replacing

    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)
