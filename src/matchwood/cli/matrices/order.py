"""`matchwood order`: rows and columns of a matrix in a better order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, with_shared

METHODS = ("rcm", "cm", "rabbit", "shingle", "llp", "degree", "hub")
FRACTION = 0.01  # of the vertices, as in matchwood.locality_ordering
DOTS = 200_000  # entries of a spy plot that are drawn as dots; of more, the density is shown


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="rcm (reverse Cuthill-McKee) or cm (not reversed); or an order that keeps "
            "neighbours together: rabbit, shingle, llp, degree or hub.",
        ),
    ] = "rcm",
    refine: Annotated[
        str | None,
        typer.Option(
            "--refine", metavar="METRIC", help="Swap vertices after that, by log_gap or linear_gap."
        ),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option("--fraction", help="Of the vertices that --refine looks at; 0.01 by default."),
    ] = None,
    seed: Annotated[int, typer.Option("--rng", min=0, help="Of shingle and llp.")] = 0,
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
    *,
    shared: Shared,
) -> None:
    """Order a matrix so that its entries lie near the diagonal, or neighbours near each other.

    Measures what that gives: bandwidth and profile, or gaps.

    A result file has, for each new row, the old row that comes there.
    """
    from matchwood.cli import results

    engine, threads, check, output, as_json = (
        shared.engine, shared.threads, shared.check, shared.output, shared.as_json
    )  # fmt: skip
    results.check_suffix(output)
    if permuted is not None:
        results.check_graph_file(permuted, "--permuted")
    if plot is not None:
        results.check_place(plot, "--plot")
    import matchwood
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    banded = method in ("rcm", "cm")
    if method not in METHODS:
        raise ValueError(f"--method must be one of {', '.join(METHODS)}, got {method!r}")
    if banded and refine is not None:
        raise ValueError(f"--refine is for orders other than rcm and cm, got --method {method}")
    for option, asked in (("--start", start), ("--algorithm", algorithm != "auto")):
        if not banded and asked:
            raise ValueError(f"{option} is for rcm and cm, got --method {method}")
    if fraction is not None and refine is None:
        raise ValueError("--fraction says what --refine looks at, which was not asked for")
    loaded = shared.load(graph)
    starts = [loaded.vertex(text) for text in start] if start else None
    found: Any
    with clock() as taken, progress("ordering"):
        if banded:
            found = matchwood.rcm_ordering(
                loaded.matrix,
                start=starts,
                method=algorithm,
                reverse=method == "rcm",
                engine=engine,
                threads=threads,
            )
        else:
            found = matchwood.locality_ordering(
                loaded.matrix,
                method,
                refine=refine,
                fraction=FRACTION if fraction is None else fraction,
                rng=seed,
                engine=engine,
                threads=threads,
            )
    if check:
        with progress("checking"):
            if banded:
                matchwood.check.check_rcm_order(
                    loaded.matrix, found, start=starts, reverse=method == "rcm"
                )
            else:
                _check_locality(loaded.matrix, found, method if refine is None else "", seed)
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
            **_counted(counters),
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


COUNTED = {
    "components": "components",
    "levels": "levels",
    "searches": "searches for starts",
    "rounds": "rounds",
    "communities": "communities",
    "layers": "layers",
    "proposed": "swaps proposed",
    "kept": "swaps kept",
    "method": "algorithm",
}


def _counted(counters: dict[str, Any]) -> dict[str, Any]:
    """What was counted, as it is shown."""
    return {text: counters[name] for name, text in COUNTED.items() if name in counters}


def _check_locality(A: Any, found: Any, method: str, seed: int) -> None:
    """The check of the method, and of the measures; a refined order is checked by its measures."""
    from matchwood import check

    check.check_gaps(A, found.before)
    check.check_gaps(A, found.after, found.perm)
    if method == "rabbit":
        check.check_rabbit_order(A, found)
    elif method == "llp":
        check.check_layered_order(A, found, rng=seed)
    elif method == "shingle":
        check.check_shingle_order(A, found, rng=seed)
    elif method == "degree":
        check.check_degree_order(A, found)
    elif method == "hub":
        check.check_hub_order(A, found)


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
        bandwidth = getattr(numbers, "bandwidth", None)
        said = f"bandwidth {bandwidth:,}" if bandwidth is not None else (
            f"log gap {numbers.log_gap:,.0f}"
        )  # fmt: skip
        ax.set(aspect="equal", title=f"{when}: {said}")
        ax.set(xticks=[], yticks=[])
    from matchwood.io.files import replacing

    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)
