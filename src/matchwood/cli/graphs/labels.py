"""What the verbs that label components print and write."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.output import print_table
from matchwood.cli.shared import Shared, report

Top = Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")]


def report_labels(
    shared: Shared, loaded: Any, taken: Any, title: str, found: Any, top: int, **more: Any
) -> None:
    """Write the labels, and print how many components there are and the largest of them."""
    import numpy as np

    n = len(found.labels)
    sizes = np.bincount(found.labels, minlength=found.count)
    largest = np.argsort(-sizes, kind="stable")[:top]
    parts = [(int(part), int(sizes[part])) for part in largest]
    single = int((sizes == 1).sum())
    shared.write(loaded, {"label": found.labels}, count=found.count)
    told = facts_of_parts(n, found.count, single, parts, **more)
    report(shared, loaded, taken, "components", title, **told)
    if not shared.as_json and top and found.count > 1:
        print_largest(n, parts)


def facts_of_parts(
    n: int, count: int, single: int, largest: list[tuple[int, int]], **more: Any
) -> dict[str, Any]:
    """The facts for programs and for people; `largest` are (component, vertices)."""
    parts = [{"component": part, "vertices": size} for part, size in largest]
    facts = {"vertices": n, "components": count, "trivial": single, "largest": parts, **more}
    shown = {"vertices": n, "components": count, "of one vertex": single}
    return {"facts": facts, "shown": shown}


def print_largest(n: int, largest: list[tuple[int, int]]) -> None:
    """A table of the largest components."""
    rows = [(part, size, f"{size / n:.1%}") for part, size in largest]
    print_table("largest", ("component", "vertices", "share"), rows)
