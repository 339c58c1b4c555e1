"""The output of the demo: tables in the terminal, and the page with the pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matchwood.report import page, pictures
from matchwood.report.demo import Demo, Place, Row, machine, summary
from matchwood.report.problems import PROBLEMS


def blank_table(title: str) -> Any:
    """A table in the common style, without columns."""
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title), title_justify="left", title_style="bold", header_style="dim")


def heads(found: Demo) -> list[str]:
    """The heads of the table; a GPU has a column only where there is one."""
    names = ["problem", "graph", "answer", "check", "SciPy", "one call", "prepared", "faster"]
    return [*names, "GPU", "faster"] if _has_gpu(found) else names


def _has_gpu(found: Demo) -> bool:
    return any(row.gpu is not None for row in found.rows)


def cells(found: Demo, row: Row) -> list[str]:
    """A row of the table, as text."""
    texts = [
        row.problem,
        row.graph,
        row.answer,
        _verdict(row),
        "" if row.scipy is None else milliseconds(row.scipy),
        milliseconds(row.raw),
        milliseconds(row.prepared),
        times(_faster(row, row.prepared)),
    ]
    if _has_gpu(found):
        gpu = row.gpu
        texts += ["", ""] if gpu is None else [milliseconds(gpu), times(_faster(row, gpu))]
    return texts


def _faster(row: Row, seconds: float) -> float | None:
    """How many times as fast as SciPy; None where it has nothing like it."""
    return None if row.scipy is None else row.scipy / seconds


def times(ratio: float | None) -> str:
    """A ratio, or nothing."""
    return "" if ratio is None else f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.1f}x"


def milliseconds(seconds: float) -> str:
    """Three digits, in milliseconds."""
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def tables(found: Demo) -> Iterator[Any]:
    """What the terminal shows: the graphs, then the results."""
    from rich.text import Text

    graphs = blank_table("graphs")
    for head in ("graph", "vertices", "entries", "made in", "what it is like"):
        graphs.add_column(head, justify="left" if head in ("graph", "what it is like") else "right")
    for place in found.places:
        made = milliseconds(place.seconds)
        graphs.add_row(place.name, f"{place.n:,}", f"{place.entries:,}", made, place.about)
    yield graphs
    columns = range(len(heads(found)))
    if len(found.rows) == len(PROBLEMS):  # a graph for each, and `line` told the answers
        yield _results("times", found, found.rows, (0, 1, *columns[4:]))
    else:
        for problem in PROBLEMS:
            title = problem.name + (", beside SciPy" if problem.scipy else "")
            rows = [row for row in found.rows if row.problem == problem.name]
            yield _results(title, found, rows, columns[1:])
    yield Text(machine(found), style="dim")


def _results(title: str, found: Demo, rows: Sequence[Row], columns: Sequence[int]) -> Any:
    from rich.text import Text

    table = blank_table(title)
    for k in columns:
        table.add_column(heads(found)[k], justify="left" if k < 4 else "right", no_wrap=k < 3)
    for row in rows:
        texts = cells(found, row)
        right = row.verdict == "right" and row.same
        styles = {3: "green" if right else "bold red", 7: "bold"}
        table.add_row(*(Text(texts[k], style=styles.get(k, "")) for k in columns))
    return table


def line(row: Row) -> str:
    """What was answered, before it is timed."""
    return f"{row.problem:22s} {row.graph:17s} {_verdict(row)}: {row.answer}"


def _verdict(row: Row) -> str:
    return row.verdict if row.same else f"{row.verdict}, but engines differ"


def html(found: Demo) -> str:
    """The page: pictures and times of each problem, then all times in a chart and a table."""
    groups = []
    for problem in PROBLEMS:
        mine = [
            (row.graph, row.scipy / row.prepared)
            for row in found.rows
            if row.problem == problem.name and row.scipy is not None
        ]
        if mine:
            groups.append((problem.name, mine))
    chart = pictures.ratios(groups, "times as fast as SciPy").markup()
    numbers = range(4, len(heads(found)))
    sections = [page.heading("matchwood demo", summary(found), machine(found), level=1)]
    for name, sketch in found.sketches:
        drawings = [page.figure(drawing.markup(), drawing.title) for drawing in sketch.drawings]
        told = [_told(row) for row in found.rows if row.problem == name]
        sections += [
            page.heading(name.capitalize(), sketch.caption),
            page.cards(drawings, kind="pair"),
            *(page.quiet(text) for text in told),
        ]
    table = page.table(heads(found), [cells(found, row) for row in found.rows], numbers=numbers)
    sections += [
        page.heading(
            "Beside SciPy",
            "SciPy’s time divided by ours on a prepared graph; 1x is level.",
            *_slower(found),
        ),
        page.figure(chart, ""),
        page.heading(
            "Every problem",
            "Each answer was checked against the definition, and is identical at one thread and "
            "at all threads. Times are medians, taken in turn with SciPy in the same process, once "
            "where that takes long. "
            "“One call” starts from a SciPy matrix, “prepared” from matchwood.graph(A).",
        ),
        page.folded("All times", table),
    ]
    sections += [page.heading("The graphs"), page.cards(_card(place) for place in found.places)]
    return page.page("matchwood demo", sections)


def _told(row: Row) -> str:
    """Where the answer on a graph was found, and how long that took."""
    engines = [("CPU", row.prepared), ("GPU", row.gpu), ("SciPy", row.scipy)]
    took = ", ".join(f"{name} {milliseconds(t)}" for name, t in engines if t is not None)
    return f"On {row.graph}: {row.answer} ({_verdict(row)}). {took}."


def _slower(found: Demo) -> list[str]:
    """Why SciPy is the faster one where it is."""
    why = {problem.name: problem.slower for problem in PROBLEMS}
    names = [row.problem for row in found.rows if (_faster(row, row.prepared) or 1.0) < 1.0]
    said = [f"{name}: {why[name]}" for name in dict.fromkeys(names)]
    fixed = "Each call has a fixed cost, of checks and threads, which counts on small graphs."
    return [f"Slower than SciPy here, and why. {' '.join(said)} {fixed}"] if said else []


def _card(place: Place) -> str:
    left, right = (drawing.markup() for drawing in place.drawings)
    facts = f"{place.n:,} vertices, {place.entries:,} entries, made in {place.seconds:.2f} s."
    both = page.side_by_side(left, right)
    return page.figure(both, f"{place.about} {facts}", title=place.name)
