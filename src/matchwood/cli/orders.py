"""The verb about orders."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.options import Graph, Shared, report, timed, with_options
from matchwood.cli.output import print_table

ELIMINATING = ("dissection", "minimum_degree")
METHODS = (
    "rcm", "cm", "auto", "natural", "rabbit", "shingle", "llp", "degree", "hub", *ELIMINATING,
)  # fmt: skip
DOTS = 200_000  # entries of a spy plot that are drawn as dots; of more, the density is shown


@with_options
def order(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="rcm (reverse Cuthill-McKee) or cm (not reversed); an order that keeps neighbours "
            "together: rabbit, shingle, llp, degree, hub, natural (as it is) or auto; or one with "
            "little fill: dissection or minimum_degree.",
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
    sweeps: Annotated[
        int | None, typer.Option("--sweeps", min=1, help="How often --refine goes; 1 by default.")
    ] = None,
    partners: Annotated[
        str | None,
        typer.Option("--partners", help="Of --refine: neighbours (by default), or median too."),
    ] = None,
    hub: Annotated[
        str | None, typer.Option("--hub", help="Of hub: sort (by default), cluster or group.")
    ] = None,
    seed: Annotated[int, typer.Option("--rng", min=0, help="Of shingle, llp, dissection.")] = 0,
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
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page about the order.")
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Order a matrix: entries near the diagonal, neighbours near each other, or little fill.

    Measures what that gives: bandwidth and profile, or gaps, or the entries of L.

    A result file has, for each new row, the old row that comes there.
    """
    results.check_suffix(shared.output)
    if permuted is not None:
        results.check_graph_file(permuted, "--permuted", inputs=[graph])
    if plot is not None:
        results.check_place(plot, "--plot")
    if html is not None:
        if html.suffix != ".html":
            raise ValueError(f"--html {html}: the name must end in .html")
        results.check_place(html, "--html")
    banded = method in ("rcm", "cm")
    if method not in METHODS:
        raise ValueError(f"--method must be one of {', '.join(METHODS)}, got {method!r}")
    if (banded or method in ELIMINATING) and refine is not None:
        raise ValueError(f"--refine is for orders other than rcm and cm, got --method {method}")
    for option, asked in (("--start", start), ("--algorithm", algorithm != "auto")):
        if not banded and asked:
            raise ValueError(f"{option} is for rcm and cm, got --method {method}")
    refining: dict[str, Any] = {"fraction": fraction, "sweeps": sweeps, "partners": partners}
    refining = {name: value for name, value in refining.items() if value is not None}
    if refining and refine is None:
        raise ValueError(f"--{min(refining)} says how --refine works, which was not asked for")
    if hub is not None and method != "hub":
        raise ValueError(f"--hub is for --method hub, got --method {method}")
    loaded = shared.load(graph)
    starts = [loaded.vertex(text) for text in start] if start else None
    found: Any
    with timed("ordering") as taken:
        if banded:
            options: dict[str, Any] = {"start": starts, "reverse": method == "rcm"}
            found = matchwood.rcm_ordering(
                loaded.matrix, method=algorithm, **options, **shared.where
            )
        elif method in ELIMINATING:
            found = _eliminated(loaded.matrix, method, seed, shared)
        else:
            some: dict[str, Any] = {"hub": hub or "sort", "refine": refine, "rng": seed, **refining}
            found = matchwood.locality_ordering(loaded.matrix, method, **some, **shared.where)
    if banded:
        shared.verify(matchwood.check.check_rcm_order, loaded.matrix, found, **options)
    elif method in ELIMINATING:
        shared.verify(found.check, loaded.matrix, found.answer)
    else:
        which = found.counters["method"] if refine is None else ""
        shared.verify(_check_locality, loaded.matrix, found, which, seed, hub or "sort")
    if shared.output is not None:
        results.write(shared.output, {"perm": found.perm}, asdict(found.after), ids=None)
    if permuted is not None or plot is not None or html is not None:
        B = matchwood.permute(loaded.matrix, found.perm, threads=shared.threads)
        if permuted is not None:
            matchwood.io.write(permuted, B)
        if plot is not None:
            _draw_order(loaded.matrix, B, found, plot)
        if html is not None:
            from matchwood.report.orders import page_of

            results.write_text(html, page_of(graph, method, loaded.matrix, B, found))
    n, counters = len(found.perm), dict(found.counters)
    before, after = asdict(found.before), asdict(found.after)
    report(
        shared, loaded, taken, "order", f"order of {graph}",
        facts={
            "vertices": n, "method": method, "before": before, "after": after, "counters": counters,
        },
        shown={"vertices": n, **_counted(counters)},
        phases=found.seconds, permuted=permuted, plot=plot, html=html,
    )  # fmt: skip
    if not shared.as_json:
        print_table(
            "measures",
            ("", "before", "after", "ratio"),
            [
                (name.replace("_", " "), value, after[name], _ratio(value, after[name]))
                for name, value in before.items()
            ],
        )


def _ratio(before: float, after: float) -> Any:
    return before / after if after else ""


COUNTED = {
    "components": "components",
    "levels": "levels",
    "searches": "searches for starts",
    "rounds": "rounds",
    "communities": "communities",
    "layers": "layers",
    "separators": "separators",
    "proposed": "swaps proposed",
    "kept": "swaps kept",
    "method": "algorithm",
}


@dataclass(frozen=True)
class Costs:
    """What elimination in an order costs, in three numbers of `matchwood.fill`."""

    entries: int
    operations: int
    height: int


class Eliminated(NamedTuple):
    """An order for elimination, as the table of `order` shows it."""

    perm: Any
    before: Costs
    after: Costs
    answer: Any
    check: Any
    counters: dict[str, Any]
    seconds: dict[str, float]


def _eliminated(A: Any, method: str, seed: int, shared: Any) -> Eliminated:
    from matchwood import check

    before = _costs(matchwood.fill(A, engine=shared.engine))
    if method == "dissection":
        cut = matchwood.nested_dissection(A, rng=seed, **shared.where)
        counters = {"separators": int(cut.separators.sum())}
        after = _costs(cut.fill)
        return Eliminated(cut.perm, before, after, cut, check.check_dissection, counters, {})
    perm = matchwood.minimum_degree(A, engine=shared.engine)
    after = _costs(matchwood.fill(A, perm, engine=shared.engine))
    return Eliminated(perm, before, after, perm, check.check_minimum_degree, {}, {})


def _costs(fill: Any) -> Costs:
    return Costs(fill.entries, fill.operations, fill.height)


def _counted(counters: dict[str, Any]) -> dict[str, Any]:
    return {text: counters[name] for name, text in COUNTED.items() if name in counters}


def _check_locality(A: Any, found: Any, method: str, seed: int, hub: str) -> None:
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
        check.check_hub_order(A, found, method=hub)


def _draw_order(A: Any, B: Any, found: Any, path: Path) -> None:
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
        if hasattr(numbers, "bandwidth"):
            said = f"bandwidth {numbers.bandwidth:,}"
        elif hasattr(numbers, "entries"):
            said = f"{numbers.entries:,} entries of L"
        else:
            said = f"log gap {numbers.log_gap:,.0f}"
        ax.set(aspect="equal", title=f"{when}: {said}")
        ax.set(xticks=[], yticks=[])
    from matchwood.io.files import replacing

    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)
