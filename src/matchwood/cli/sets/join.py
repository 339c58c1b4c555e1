"""`matchwood join`: pairs of records whose elements can be matched well."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.options import Check, Engine, Json, Threads
from matchwood.cli.output import print_facts, print_json, print_table
from matchwood.cli.shared import timed

SHOWN = 10  # best pairs in the table
COUNTS = (
    "generated",
    "refined",
    "verified",
    "accepted_by_bound",
    "rejected_by_bound",
    "solved_exactly",
    "without_prefix",
)


def command(
    left: Annotated[Path, typer.Argument(metavar="A", help="csv, tsv, parquet, or a set a line.")],
    right: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another file.  Default: A with itself.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", help="Column with the sets.  Default: each line is one.")
    ] = None,
    right_on: Annotated[
        str | None, typer.Option("--right-on", help="Its name in B, where that is another.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Join only rows that are equal in this column.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option("--separator", help="Between elements.  Default: ';'.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Least similarity.  Default: 0.7.")
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Only so many best pairs.")
    ] = None,
    per_left: Annotated[
        int | None, typer.Option("--per-left", min=1, help="Only so many best for each row of A.")
    ] = None,
    similarity: Annotated[
        str, typer.Option("--similarity", help="jaccard, edit, edit_padded or equal.")
    ] = "jaccard",
    q: Annotated[int, typer.Option("-q", min=1, help="Characters of a gram.")] = 3,
    verify: Annotated[
        str,
        typer.Option("--verify", help="certified, exact, early, greedy, dominant or streaming."),
    ] = "certified",
    normalise: Annotated[
        list[str] | None,
        typer.Option("--normalise", help="strip, lower, casefold, nfc, nfkc; may be repeated."),
    ] = None,
    exclude_equal: Annotated[
        bool, typer.Option("--exclude-equal", help="Leave out pairs of score 1.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, help="Stop with an error beyond so many pairs.")
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say how many pairs and seconds to expect.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the pairs as .csv.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page about the join.")
    ] = None,
    check: Check = False,
    engine: Engine = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find pairs of sets whose elements can be matched well.

    A result file has both rows, the score and both sets of each pair.
    """
    for path, option, suffix in ((output, "-o", ".csv"), (html, "--html", ".html")):
        if path is not None:
            if path.suffix != suffix:
                raise ValueError(f"{option} {path}: the name must end in {suffix}")
            results.check_place(path, option)
    if right is None and right_on is not None:
        raise ValueError("--right-on names a column of B, and there is no B")
    options: dict[str, Any] = {
        "delta": delta, "k": top, "per_left": per_left, "verify": verify,
        "exclude_equal": exclude_equal, "limit": limit, "engine": engine, "threads": threads,
    }  # fmt: skip
    making = {"similarity": similarity, "q": q, "normalise": normalise or None}
    with timed("reading") as loading:
        sides = _sides(left, right, (on, right_on or on), separator, making)
    options["by"] = _groups(by, sides)
    if estimate:
        _estimate(left, sides, options, as_json)
        return
    import matchwood

    with timed("joining", ("records", "pairs")) as taken:
        pairs = matchwood.fuzzy_join(*sides, **options)
    if check:
        with timed("checking"):
            pairs.check(*sides)
    if output is not None:
        results.write_text(output, _csv(pairs, sides))
    if html is not None:
        from matchwood.report.joins import page_of

        results.write_text(html, page_of(left.name, pairs, sides))
    facts = {
        "left": str(left),
        "right": None if right is None else str(right),
        "records": [len(side) for side in sides],
        "pairs": len(pairs),
        **{name: pairs.stats.get(name, 0) for name in COUNTS},
    }
    if as_json:
        seconds = {"load": loading.seconds, "join": taken.seconds, "phases": pairs.stats["seconds"]}
        files = {"output": output, "html": html}
        named = {name: str(path) if path else None for name, path in files.items()}
        print_json({**facts, "checked": check, "seconds": seconds, **named})
        return
    shown = {**facts, "records": " and ".join(f"{len(side):,}" for side in sides)}
    shown = {**shown, "loading": loading, "time": taken, "checked": "right" if check else None}
    print_facts(f"join of {left}", {**shown, "written": output, "page": html})
    print_table(
        "best pairs", ("left", "right", "score", "left set", "right set"), _best(pairs, sides)
    )


def _sides(
    left: Path, right: Path | None, names: Any, separator: str | None, making: dict[str, Any]
) -> list[Any]:
    """A collection for each file."""
    import matchwood
    from matchwood.cli.sets.tables import read

    made = []
    for path, on in ((left, names[0]), (right, names[1])):
        if path is None:
            continue
        sets = read(path, on)
        between: str | None = separator or sets.separator or ";"
        texts = sets.data
        if sets.is_table and on in texts and any(not isinstance(v, str) for v in texts[on] if v):
            between = None  # a parquet column of lists
        made.append(
            matchwood.collection(
                texts, on=on if sets.is_table else None, separator=between, **making
            )
        )
    return made


def _groups(by: str | None, sides: list[Any]) -> Any:
    if by is None:
        return None
    for side in sides:
        if not isinstance(side.data, dict):
            raise ValueError("--by names a column: say with --on which column holds the sets")
    return by


def _estimate(left: Path, sides: list[Any], options: dict[str, Any], as_json: bool) -> None:
    from matchwood.applications.join.fuzzy import estimate

    chosen = {name: options[name] for name in ("delta", "verify", "by", "engine", "threads")}
    found = estimate(*sides, **chosen)
    if as_json:
        print_json({"left": str(left), "estimate": found})
        return
    shown = {
        **found,
        "pairs": f"about {found['pairs']:,}",
        "error": f"{found['error']:,} or less, most likely",
    }
    print_facts(f"estimate of the join of {left}", shown)


def _csv(pairs: Any, sides: list[Any]) -> str:
    from matchwood.cli.sets.tables import safe_cell

    lines = ["left,right,score,left_set,right_set\n"]
    for a, b, score in zip(*(part.tolist() for part in pairs), strict=True):
        cells = (_told(sides[0], a), _told(sides[-1], b))
        lines.append(f"{a},{b},{score!r},{','.join(map(safe_cell, cells))}\n")
    return "".join(lines)


def _told(side: Any, row: int) -> str:
    return "; ".join(map(str, side.record(row)))


def _best(pairs: Any, sides: list[Any]) -> list[Any]:
    import numpy as np

    order = np.lexsort((pairs.right, pairs.left, -pairs.score))[:SHOWN]
    return [
        (
            int(pairs.left[i]),
            int(pairs.right[i]),
            float(pairs.score[i]),
            _told(sides[0], pairs.left[i])[:60],
            _told(sides[-1], pairs.right[i])[:60],
        )
        for i in order.tolist()
    ]
