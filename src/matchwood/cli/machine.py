"""The verbs about this machine: times, compiling beforehand, settings, the demo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.load import load
from matchwood.cli.options import Compact, Json, Pattern, Read, Threads
from matchwood.errors import CheckFailed
from matchwood.machine.config import kernels_line


def bench(
    problem: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROBLEM]...", help="bfs, components, ...; none: all."),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option("-g", "--graph", help="A file or generator in place of the standard graphs."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Rounds; median counts.")] = 7,
    threads: Threads = None,
    compact: Compact = False,
    pattern: Pattern = False,
    read: Read = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time problems beside SciPy in the same run; every answer is checked first.

    The benchmarks with all peers and the bars to be met are in bench/ of the source: make bench.
    """
    if output is not None:
        results.check_place(output)

    from matchwood.cli.output import console, print_json, progress
    from matchwood.report import bench as report
    from matchwood.report import scenes

    chosen = report.choose(problem or [])
    places: Iterable[scenes.Scene] = [
        scenes.Scene(text, "", load(text, compact=compact, pattern=pattern, read=read).matrix)
        for text in graph or []
    ]
    if not graph:
        places = scenes.standard()
    with progress("starting") as bar:
        found = report.run(chosen, places, threads=threads, repeats=repeats, say=bar.say)
    if output is not None:
        results.write_json(output, found)
    if as_json:
        print_json(found)
    else:
        console().print(report.table(found))


def warmup(as_json: Json = False) -> None:
    """Compile all kernels now, so that later calls do not wait for it."""
    from matchwood.cli.output import duration, print_facts, print_json, progress

    with progress("compiling") as bar:
        summary = matchwood.warmup(report=lambda step: bar.say(f"compiling {step}"))
    if as_json:
        print_json(summary)
        return
    print_facts(
        "warmup",
        {
            "time": duration(summary["seconds"]),
            "compiled": f"{summary['compiled']} new files in the cache",
            "cache": summary["folder"] or "none: no folder can be written, nothing is kept",
        },
    )


def config(as_json: Json = False) -> None:
    """Show threads, CPUs, caches, versions and GPUs."""
    from matchwood.cli.output import amount, print_facts, print_json

    found = matchwood.show_config(mode="dicts")
    assert found is not None
    if as_json:
        print_json(found)
        return
    cpu, cache, gpu = found["cpu"], found["cache"], found["gpu"]
    devices = [
        f"{device['name']}, {amount(device['bytes'])}, compute {device['compute_capability']}"
        for device in gpu["devices"]
    ]
    print_facts(
        f"matchwood {found['matchwood']}",
        {
            "python": f"{found['python']} on {found['system']}",
            "cpu": f"{cpu['threads']} threads on {cpu['cpus']} CPUs ({cpu['architecture']})",
            "kernels": kernels_line(found["kernels"]),
            "cache": cache["folder"] or "none: no folder can be written",
            "cached": f"{cache['files']} files, {amount(cache['bytes'])}",
            "gpu": "; ".join(devices) or f"none: {gpu['reason']}",
            **{name: version or "not installed" for name, version in found["versions"].items()},
        },
    )


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The page with the pictures.")
    ] = Path("demo.html"),
    threads: Threads = None,
    size: Annotated[str, typer.Option("--size", help="full, or tiny for a quick look.")] = "full",
    every: Annotated[
        bool, typer.Option("--all", help="Every problem on all graphs; without it on one each.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run every problem, check every answer, compare with SciPy, write a page with pictures."""
    if size not in ("full", "tiny"):
        raise ValueError(f"--size must be full or tiny, got {size!r}")
    results.check_place(output)
    from matchwood.cli.output import console, print_json, progress
    from matchwood.report import demo as report
    from matchwood.report import show

    def print_row(row: report.Row) -> None:
        if not as_json:
            typer.echo(show.line(row))

    with progress("starting") as bar:
        found = report.run(size=size, every=every, threads=threads, say=bar.say, show=print_row)
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
