"""`matchwood demo`: every problem on a few graphs, checked and compared with SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli import results
from matchwood.cli.options import Json, Threads
from matchwood.errors import CheckFailed


def command(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The page with the pictures.")
    ] = Path("demo.html"),
    threads: Threads = None,
    size: Annotated[str, typer.Option("--size", help="full, or tiny for a quick look.")] = "full",
    as_json: Json = False,
) -> None:
    """Run every problem, check every answer, compare with SciPy, write a page with pictures."""
    if size not in ("full", "tiny"):
        raise ValueError(f"--size must be full or tiny, got {size!r}")
    results.check_place(output)
    from matchwood.cli.output import console, print_json
    from matchwood.cli.progress import progress
    from matchwood.report import demo as report
    from matchwood.report import show

    with progress("starting") as bar:
        found = report.run(size=size, threads=threads, say=bar.say)
        results.write_text(output, show.html(found))
    if as_json:
        print_json({**report.as_dict(found), "output": str(output)})
    else:
        terminal = console()
        for part in show.tables(found):
            terminal.print(part)
        terminal.print(f"{report.summary(found)}  Pictures: {output}", soft_wrap=True)
    if report.wrong(found):
        raise CheckFailed(f"demo: {report.summary(found)}")
