"""Options that several verbs share, and what nearly every verb does: load, time, check, report.

The function of a verb gets these options as one argument, a `Shared`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from matchwood.cli import results
from matchwood.cli.output import print_facts, print_json, progress
from matchwood.cli.results import check_place
from matchwood.report.timing import Clock, clock

if TYPE_CHECKING:
    from matchwood.cli.load import Loaded


# Arguments and options


Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A file, or a generator and its arguments: rmat:16  delaunay:n=5000,rng=3",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", help="cpu, gpu or reference.  Default: cpu.", metavar="NAME"),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Default: all CPUs this process may use.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
Check = Annotated[bool, typer.Option("--check", help="Check the answer against the definition.")]
Compact = Annotated[
    bool, typer.Option("--compact", help="The ids in the file have gaps: take those that occur.")
]
Pattern = Annotated[
    bool, typer.Option("--pattern", help="Every entry is 1, whatever the file says.")
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="NAME=VALUE",
        help="How to read the file, as matchwood.io.read says: --read symmetric=yes --read base=1",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the result: .npy, .npz, .txt or .csv.",
    ),
]
Rng = Annotated[int, typer.Option("--rng", min=0, help="Seed of all that is drawn at random.")]
Ties = Annotated[
    str, typer.Option("--ties", help="index or hash: which of equally heavy edges to prefer.")
]


# Load, time, check, report


class Shared(NamedTuple):
    """Where a verb runs, how it reads the graph, and what it does with the answer."""

    engine: Engine = None
    threads: Threads = None
    check: Check = False
    compact: Compact = False
    pattern: Pattern = False
    read: Read = None
    output: Output = None
    as_json: Json = False

    def load(self, graph: str) -> Loaded:
        """The graph.  A result file that could not be written is refused first."""
        from matchwood.cli.load import load

        results.check_suffix(self.output)
        return load(graph, compact=self.compact, pattern=self.pattern, read=self.read)

    @property
    def where(self) -> dict[str, Any]:
        """The arguments `engine` and `threads` of a public function."""
        return {"engine": self.engine, "threads": self.threads}

    def verify(self, check: Callable[..., None], *arguments: Any, **options: Any) -> None:
        """Check the answer, if --check was given."""
        if self.check:
            with progress("checking"):
                check(*arguments, **options)

    def write(self, loaded: Loaded, columns: Mapping[str, Any], **numbers: Any) -> None:
        """Write the result file, if -o was given."""
        if self.output is not None:
            results.write(self.output, columns, numbers, ids=loaded.ids)


def with_options(command: Callable[..., None], record: Any) -> Callable[..., Any]:
    """The command with the fields of `record`, its last argument, as options."""
    hints = get_type_hints(command, include_extras=True)
    kinds = get_type_hints(record, include_extras=True)
    *own, last = inspect.signature(command).parameters.values()
    shown = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    for name, default in record._field_defaults.items():
        kind = inspect.Parameter.KEYWORD_ONLY
        shown.append(inspect.Parameter(name, kind, default=default, annotation=kinds[name]))

    @functools.wraps(command)
    def run(*arguments: Any, **given: Any) -> None:
        made = record(**{name: given.pop(name) for name in record._fields})
        command(*arguments, **given, **{last.name: made})

    del run.__wrapped__  # type: ignore[attr-defined]  # Typer would look at that one's arguments
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


with_shared = functools.partial(with_options, record=Shared)


@contextlib.contextmanager
def timed(what: str, units: tuple[str, str] | None = None) -> Iterator[Clock]:
    """Time the work inside the ``with`` block, and show a bar if it takes long."""
    with clock() as taken, progress(what, units):
        yield taken


def report(
    shared: Shared,
    loaded: Loaded,
    taken: Clock,
    step: str,
    title: str,
    *,
    facts: Mapping[str, Any],
    shown: Mapping[str, Any],
    phases: Mapping[str, float] | None = None,
    **files: Path | None,
) -> None:
    """Print the answer: `facts` as JSON, or `shown` as a table for people.

    What all verbs report is added to both.  `step` is the name of the verb's own time, `phases` are
    the seconds of its parts.  `files` are further files that were written.
    """
    if shared.as_json:
        seconds: dict[str, Any] = {"load": asdict(loaded.clock), step: asdict(taken)}
        if phases is not None:
            seconds["phases"] = dict(phases)
        paths = {"output": shared.output, **files}
        print_json(
            {
                "graph": loaded.name,
                **facts,
                "checked": shared.check,
                "seconds": seconds,
                **{name: str(path) if path else None for name, path in paths.items()},
            }
        )
        return
    from matchwood.cli.output import duration

    parts = ", ".join(f"{name} {duration(value)}" for name, value in (phases or {}).items())
    print_facts(
        title,
        {
            **shown,
            "loading": loaded.clock,
            "time": taken,
            "by phase": parts or None,
            "checked": "right" if shared.check else None,
            "written": shared.output,
            **files,
        },
    )


# Options of the verbs that run on `Devices`: which, with how much memory, in how many batches.


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
