"""Options that several verbs share, and what nearly every verb does: load, time, check, report.

The function of a verb gets these options as one argument, a `Shared`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.load import Loaded, load
from matchwood.cli.output import duration, print_facts, print_json, progress
from matchwood.report.timing import Clock, clock

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
        results.check_suffix(self.output, graph)
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


def with_options(command: Callable[..., None]) -> Callable[..., Any]:
    """The command with the fields of its records (`Shared`, `Beyond`, ...) as options."""
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        record: Any = hints[parameter.name]
        if not hasattr(record, "_field_defaults"):
            shown.append(parameter.replace(annotation=record))
            continue
        records[parameter.name], kinds = record, get_type_hints(record, include_extras=True)
        for name, default in record._field_defaults.items():
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(inspect.Parameter(name, kind, default=default, annotation=kinds[name]))

    @functools.wraps(command)
    def run(*arguments: Any, **given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field: given.pop(field) for field in record._fields})
        command(*arguments, **given)

    del run.__wrapped__  # type: ignore[attr-defined]  # Typer would look at that one's arguments
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


@contextlib.contextmanager
def timed(what: str, units: tuple[str, str] | None = None) -> Iterator[Clock]:
    """Time the work inside the ``with`` block, and show a bar if it takes long."""
    with clock() as taken, progress(what, units):
        yield taken


def report(
    shared: Any,
    loaded: Any,
    taken: Any,
    step: str,
    title: str,
    *,
    facts: Mapping[str, Any],
    shown: Mapping[str, Any],
    phases: Any = None,
    **files: Path | None,
) -> None:
    """Print the answer: `facts` as JSON, or `shown` as a table for people.

    `shared` are the options of the verb, `loaded` has name and clock of the graph.  What all verbs
    report is added to both.  `step` is the name of the verb's own time, `phases` are
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


class Beyond(NamedTuple):
    """The devices of a verb."""

    devices: DeviceNumbers = None
    memory: Memory = None
    batches: Batches = None
    stats: StatsFile = None

    def where(self, shared: Shared) -> dict[str, Any]:
        """The arguments `engine` and `threads` of a public function."""
        if self.devices is None:
            alone = [
                name for name, value in zip(self._fields, self, strict=True) if value is not None
            ]
            if alone:
                raise typer.BadParameter(f"--{alone[0]} needs --devices, such as --devices 0")
            return shared.where
        if shared.engine is not None:
            raise typer.BadParameter("--devices and --engine cannot both be given")
        words = [word.strip() for word in self.devices.split(",")]
        if not all(word.isascii() and word.isdigit() for word in words):
            raise typer.BadParameter(f"--devices must be numbers with commas, got {self.devices!r}")
        if self.stats is not None:
            results.check_place(self.stats, "--stats")
        engine = matchwood.Devices(
            [int(word) for word in words], memory=self.memory, batches=self.batches,
            stats=self.stats is not None,
        )  # fmt: skip
        return {"engine": engine, "threads": shared.threads}

    def write(self, stats: Any) -> None:
        """The statistics of a call on `Devices`, as JSON."""
        if self.stats is not None:
            results.write_json(self.stats, stats.to_dict())
