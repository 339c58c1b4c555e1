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
    single = int((sizes == 1).sum())
    shared.write(loaded, {"label": found.labels}, count=found.count)
    report(
        shared, loaded, taken, "components", title,
        facts={
            "vertices": n,
            "components": found.count,
            "trivial": single,
            "largest": [
                {"component": int(part), "vertices": int(sizes[part])} for part in largest
            ],
            **more,
        },
        shown={"vertices": n, "components": found.count, "of one vertex": single},
    )  # fmt: skip
    if not shared.as_json and top and found.count > 1:
        print_table(
            "largest",
            ("component", "vertices", "share"),
            [(int(part), int(sizes[part]), f"{sizes[part] / n:.1%}") for part in largest],
        )
