"""Options of the verbs that run on `Devices`: which, with how much memory, in how many batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.results import check_place
from matchwood.cli.shared import Shared

DeviceNumbers = Annotated[
    str | None,
    typer.Option(
        "--devices",
        metavar="0,1,...",
        help="Run on these GPUs, for graphs larger than one; 0,0 makes two partitions on one.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Most memory of each partition: 8GiB."),
]
Batches = Annotated[
    int | None, typer.Option("--batches", min=1, help="Batches of a partition, with --devices.")
]
StatsFile = Annotated[
    Path | None,
    typer.Option(
        "--stats", metavar="FILE", help="Write what travelled, by round, as JSON; with --devices."
    ),
]


def place(
    shared: Shared,
    devices: str | None,
    memory: str | None,
    batches: int | None,
    stats: Path | None,
) -> dict[str, Any]:
    """The arguments `engine` and `threads` of a public function."""
    if devices is None:
        given = {"--memory": memory, "--batches": batches, "--stats": stats}
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise typer.BadParameter(f"{alone[0]} needs --devices, such as --devices 0")
        return shared.where
    if shared.engine is not None:
        raise typer.BadParameter("--devices and --engine cannot both be given")
    from matchwood import Devices

    words = [word.strip() for word in devices.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise typer.BadParameter(f"--devices must be numbers with commas, got {devices!r}")
    numbers = [int(word) for word in words]
    if stats is not None:
        check_place(stats, "--stats")
    engine = Devices(numbers, memory=memory, batches=batches, stats=stats is not None)
    return {"engine": engine, "threads": shared.threads}


def write_stats(path: Path | None, stats: Any) -> None:
    """The statistics of a call on `Devices`, as JSON."""
    if path is not None:
        path.write_text(json.dumps(stats.to_dict(), indent=1) + "\n")
