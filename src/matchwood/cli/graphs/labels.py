"""What the verbs that label components print and write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.cli import results
from matchwood.cli.output import print_facts, print_json, print_table


def report(
    title: str, graph: str, loaded: Any, found: Any, taken: Any, *,
    top: int, check: bool, output: Path | None, as_json: bool, **more: Any,
) -> None:  # fmt: skip
    """Write the labels, and print how many components there are and the largest of them."""
    sizes = np.bincount(found.labels, minlength=found.count)
    largest = np.argsort(-sizes, kind="stable")[:top]
    single = int((sizes == 1).sum())
    if output is not None:
        results.write(output, {"label": found.labels}, {"count": found.count}, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.labels),
                "components": found.count,
                "trivial": single,
                "largest": [
                    {"component": int(part), "vertices": int(sizes[part])} for part in largest
                ],
                **more,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "components": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        title,
        {
            "vertices": len(found.labels),
            "components": found.count,
            "of one vertex": single,
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
    if top and found.count > 1:
        print_table(
            "largest",
            ("component", "vertices", "share"),
            [
                (int(part), int(sizes[part]), f"{sizes[part] / len(found.labels):.1%}")
                for part in largest
            ],
        )
