"""What every verb on ranks does: open the communicator, load the graph, time, check, report.

All ranks run the verb; rank 0 alone prints and shows the bar.  An error is told once, by rank 0,
which hears of errors on other ranks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from matchwood.cli import results
from matchwood.cli.errors import ERROR, FELL_SHORT, FellShort
from matchwood.cli.options import Check, Json, Pattern, Read
from matchwood.cli.output import amount, print_facts, print_json
from matchwood.cli.progress import progress
from matchwood.cli.shared import with_options
from matchwood.report.timing import Clock, clock

Grid = Annotated[
    str | None,
    typer.Option("--grid", metavar="RxC", help="Ranks down and across.  Default: near to square."),
]
Order = Annotated[
    str, typer.Option("--order", help="auto, given or hashed: how vertices are dealt out.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads of each rank.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the result, one .npy file."),
]


class Cluster(NamedTuple):
    """How a verb spreads the graph, and what it does with the answer."""

    grid: str | None = None
    order: str = "auto"
    threads: int | None = None
    check: bool = False
    pattern: bool = False
    read: list[str] | None = None
    output: Path | None = None
    as_json: bool = False

    @contextlib.contextmanager
    def load(self, graph: str, *more: Path | None) -> Iterator[Session]:
        """The ranks and the graph on them; `more` are further files that will be written."""
        with opened(self.threads) as comm:
            from matchwood.engines.ranks.agreement import together

            together(comm, lambda: _check_places(comm, (self.output, *more)))
            with clock() as taken, watched(comm, f"reading {graph}"):
                spread = _graph(graph, self, comm)
            yield Session(self, graph, comm, spread, taken)


_OPTIONS: dict[str, tuple[Any, Any]] = {  # kind and default
    "grid": (Grid, None),
    "order": (Order, "auto"),
    "threads": (Threads, None),
    "check": (Check, False),
    "pattern": (Pattern, False),
    "read": (Read, None),
    "output": (Output, None),
    "as_json": (Json, False),
}


def with_cluster(command: Callable[..., None]) -> Callable[..., Any]:
    """Turn the last argument of `command`, a `Cluster`, into options of the command line."""
    return with_options(command, Cluster, _OPTIONS)


@contextlib.contextmanager
def opened(threads: int | None = None) -> Iterator[Any]:
    """The communicator of all ranks.  Of an error rank 0 tells, the others leave quietly."""
    import matchwood
    from matchwood.errors import RankFailed

    comm = matchwood.dist.world(threads=threads)
    short: FellShort | None = None
    try:
        with comm:
            try:
                yield comm
            except FellShort as error:  # on all ranks, which part as after any answer
                short = error
    except Exception as error:
        if os.environ.get("MATCHWOOD_DEBUG"):
            raise
        if comm.rank:
            raise typer.Exit(ERROR) from None
        if isinstance(error, RankFailed):
            raise ValueError(str(error)) from None
        raise
    if short is not None:
        raise typer.Exit(FELL_SHORT) if comm.rank else short


def _check_places(comm: Any, paths: tuple[Path | None, ...]) -> None:
    for path in paths:
        if path is None or comm.rank:
            continue
        if path.suffix != ".npy":
            raise ValueError(f"-o {path}: ranks write .npy files, so the name must end in .npy")
        results.check_place(path)


def _graph(text: str, cluster: Cluster, comm: Any) -> Any:
    """The graph named by a GRAPH argument, spread over the ranks."""
    from matchwood.cli import load

    name, colon, words = text.partition(":")
    spread: dict[str, Any] = {"comm": comm, "grid": cluster.grid, "order": cluster.order}
    if colon and not Path(text).exists() and name in load.generators():
        if cluster.pattern:
            raise ValueError("--pattern is for files; generators have arguments for their values")
        return load.make(name, load.split(words), **spread)
    import matchwood

    options = load.keywords("read", matchwood.io.read, cluster.read or ())
    options.update({"pattern": True} if cluster.pattern else {})
    found = matchwood.io.read(text, **options, **spread)
    return found[0] if isinstance(found, tuple) else found


def told(what: str, round_number: int, active: int | None, received: int) -> str:
    """What the bar says: the round, active vertices, what a rank has received."""
    of = "" if active is None else f", {active:,} active"
    return f"{what}: round {round_number:,}{of}, {received / 1e6:,.1f} MB a rank"


@contextlib.contextmanager
def watched(comm: Any, what: str) -> Iterator[None]:
    """On rank 0 a bar, which tells of the rounds."""
    if comm.rank:
        yield
        return
    with progress(what) as bar:
        comm.listener = lambda number, active, traffic: bar.say(
            told(what, number, active, traffic.bytes_received)
        )
        try:
            yield
        finally:
            comm.listener = None


@dataclass
class Session:
    """The ranks of a verb, and the graph on them."""

    cluster: Cluster
    name: str
    comm: Any
    graph: Any
    loading: Clock
    work: Clock | None = None
    traffic: Any = None

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Time the work, count what it receives, and show a bar if it takes long."""
        self.comm.barrier()
        self.comm.traffic.clear()
        with clock() as taken, watched(self.comm, what):
            yield
        own = self.comm.traffic
        self.traffic = self.comm.objects((own.bytes_received, own.messages))
        self.work = taken

    def verify(self, check: Callable[..., None], *arguments: Any, **options: Any) -> None:
        """Check the answer on all ranks, if --check was given."""
        if self.cluster.check:
            with watched(self.comm, "checking"):
                check(self.graph, *arguments, **options)

    def write(self, vector: Any, path: Path | None = None) -> None:
        """Write a vector as one file, if -o (or the option of `path`) was given."""
        from matchwood.cli.cluster.writing import save_vector

        path = self.cluster.output if path is None else path
        if path is not None:
            save_vector(self.comm, path, vector)

    def report(
        self, step: str, title: str, *, facts: Mapping[str, Any], shown: Mapping[str, Any],
        **files: Path | None,
    ) -> bool:  # fmt: skip
        """Print the answer on rank 0; True where a table for people may follow."""
        if self.comm.rank:
            return False
        received = [each[0] for each in self.traffic]
        spread = {
            "ranks": self.comm.size,
            "grid": self.graph.grid.name,
            "received": {"most": max(received), "mean": sum(received) / len(received)},
            "messages": max(each[1] for each in self.traffic),
        }
        paths = {"output": self.cluster.output, **files}
        if self.cluster.as_json:
            assert self.work is not None
            print_json(
                {
                    "graph": self.name,
                    **facts,
                    **spread,
                    "checked": self.cluster.check,
                    "seconds": {"load": asdict(self.loading), step: asdict(self.work)},
                    **{name: str(path) if path else None for name, path in paths.items()},
                }
            )
            return False
        print_facts(
            title,
            {
                **shown,
                "ranks": f"{self.comm.size} ({self.graph.grid.name})",
                "received by a rank": f"{amount(max(received))} at most",
                "loading": self.loading,
                "time": self.work,
                "checked": "right" if self.cluster.check else None,
                "written": self.cluster.output,
                **files,
            },
        )
        return True
