"""`matchwood dist VERB ...`: problems solved by all ranks that were started.

All ranks run the verb; rank 0 alone prints and shows the bar.  An error is printed once, by rank 0,
which receives the errors of other ranks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import matchwood
from matchwood.cli import graphs, load, matrices, results
from matchwood.cli.errors import ERROR, FELL_SHORT, FellShort
from matchwood.cli.options import Check, Graph, Json, Pattern, Read, Rng, Ties, report, with_options
from matchwood.cli.output import amount, duration, print_facts, print_json, print_table, progress
from matchwood.errors import RankFailed
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
    """How a verb distributes the graph, and what it does with the answer."""

    grid: Grid = None
    order: Order = "auto"
    threads: Threads = None
    check: Check = False
    pattern: Pattern = False
    read: Read = None
    output: Output = None
    as_json: Json = False

    @contextlib.contextmanager
    def load(self, graph: str, *more: Path | None) -> Iterator[Session]:
        """The ranks and the graph on them; `more` are further files that will be written."""
        with opened(self.threads) as comm:
            from matchwood.engines.ranks.agreement import together

            together(comm, lambda: _check_places(comm, (self.output, *more)))
            with clock() as taken, watched(comm, f"reading {graph}"):
                spread = _graph(graph, self, comm)
            yield Session(self, graph, comm, spread, taken)


@contextlib.contextmanager
def opened(threads: int | None = None) -> Iterator[Any]:
    """The communicator of all ranks.  Rank 0 prints an error, the others exit silently."""
    comm = matchwood.dist.world(threads=threads)
    short: FellShort | None = None
    try:
        with comm:
            try:
                yield comm
            except FellShort as error:  # raised on all ranks alike
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
    """The graph named by a GRAPH argument, distributed over the ranks."""
    name, colon, words = text.partition(":")
    spread: dict[str, Any] = {"comm": comm, "grid": cluster.grid, "order": cluster.order}
    if colon and not Path(text).exists() and name in load.generators():
        if cluster.pattern:
            raise ValueError("--pattern is for files; generators have arguments for their values")
        return load.make(name, load.split(words), **spread)
    options = load.keywords("read", matchwood.io.read, cluster.read or ())
    options.update({"pattern": True} if cluster.pattern else {})
    found = matchwood.io.read(text, **options, **spread)
    return found[0] if isinstance(found, tuple) else found


def told(what: str, round_number: int, active: int | None, received: int) -> str:
    """The text of the bar: the round, active vertices, what a rank has received."""
    of = "" if active is None else f", {active:,} active"
    return f"{what}: round {round_number:,}{of}, {received / 1e6:,.1f} MB a rank"


@contextlib.contextmanager
def watched(comm: Any, what: str) -> Iterator[None]:
    """Show a bar on rank 0, with the rounds."""
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
    clock: Clock  # of reading it
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
        grid = self.graph.grid.name
        spread = {
            "ranks": self.comm.size,
            "grid": grid,
            "received": {"most": max(received), "mean": sum(received) / len(received)},
            "messages": max(each[1] for each in self.traffic),
        }
        people = {
            "ranks": f"{self.comm.size} ({grid})",
            "received by a rank": f"{amount(max(received))} at most",
        }
        report(
            self.cluster, self, self.work, step, title,
            facts={**facts, **spread}, shown={**shown, **people}, **files,
        )  # fmt: skip
        return not self.cluster.as_json


# Summaries of vectors that are distributed over ranks, without gathering them.


def largest_parts(G: Any, labels: Any, top: int) -> tuple[int, list[tuple[int, int]]]:
    """The number of labels with one vertex, and the largest (label, vertices), largest first.

    Label k is counted by the owner of vertex k.
    """
    import numpy as np

    own = labels.local.astype(np.int64)
    distinct, counts = np.unique(own, return_counts=True)
    places, counts = G.exchange.packets(distinct, counts)
    sizes = np.bincount(places, weights=counts, minlength=G.grid.owned).astype(np.int64)
    mine = np.argsort(-sizes, kind="stable")[:top]
    found = [(int(G.ids[k]), int(sizes[k])) for k in mine if sizes[k]]
    told = G.comm.objects((int((sizes == 1).sum()), found))
    every = sorted((pair for _, pairs in told for pair in pairs), key=lambda p: (-p[1], p[0]))
    return sum(single for single, _ in told), every[:top]


def highest(G: Any, vector: Any, top: int) -> list[tuple[int, float]]:
    """The vertices of the largest values, (vertex, value), the largest first."""
    import numpy as np

    mine = np.lexsort((G.ids, -vector.local))[:top]
    found = [(int(G.ids[k]), float(vector.local[k])) for k in mine]
    every = sorted((p for part in G.comm.objects(found) for p in part), key=lambda p: (-p[1], p[0]))
    return every[:top]


def level_sizes(G: Any, levels: Any) -> list[int]:
    """The number of vertices of each level, from 0 on."""
    import numpy as np

    reached = levels.local[levels.local >= 0]
    deepest = int(reached.max()) if reached.size else -1
    most = int(G.comm.allreduce(np.array([deepest]), "max")[0])
    sizes = np.bincount(reached, minlength=most + 1).astype(np.int64)
    found: list[int] = G.comm.allreduce(sizes, "sum").tolist()
    return found


# One ordinary .npy file, written by all ranks.
#
# It is written beside the one that it replaces and takes its name when it is complete.


@contextlib.contextmanager
def _replacing(comm: Any, path: Path) -> Iterator[Path]:
    """A name for the new file; it takes the place of the old one when all ranks have written."""
    from matchwood.engines.ranks.agreement import together

    part = path.with_name(f".{path.name}.partial")
    try:
        yield part
        comm.barrier()
        together(comm, lambda: None if comm.rank else part.replace(path))
    finally:
        if comm.rank == 0:
            part.unlink(missing_ok=True)


def save_vector(comm: Any, path: Path, vector: Any) -> None:
    """A DistributedVector in the order of its vertices."""
    with _replacing(comm, path) as part:
        vector.save(part)


def save_edges(comm: Any, path: Path, edges: Any, n: int) -> None:
    """Edges (u, v) of all ranks as a matrix of two columns, ascending.

    Each rank gets those whose first end is in its range of vertices, so it knows which lines of
    the file are its own.
    """
    import numpy as np

    from matchwood.engines.ranks.exchanges import Routed
    from matchwood.engines.ranks.vectors import write_npy

    width = max(1, -(-n // comm.size))
    tails, heads = (np.ascontiguousarray(edges[:, k]) for k in (0, 1))
    tails, heads = Routed(comm, tails // width).send(tails, heads)
    order = np.lexsort((heads, tails))
    mine = np.stack((tails[order], heads[order]), axis=1)
    sizes = comm.allgather(np.array([mine.shape[0]], np.int64))
    with _replacing(comm, path) as part:
        write_npy(comm, part, mine, int(sizes[: comm.rank].sum()), int(sizes.sum()))


@with_options
def components(
    graph: Graph,
    method: Annotated[str, typer.Option("--method", help="auto or colour.")] = "auto",
    top: graphs.Top = 10,
    *,
    cluster: Cluster,
) -> None:
    """Find the connected components of a graph (of a directed one: the weak components)."""
    with cluster.load(graph) as session:
        with session.timed("finding components"):
            found = matchwood.connected_components(session.graph, method=method)
        session.verify(matchwood.check.check_connected_components, found)
        report_parts(session, f"components of {graph}", found, top)


def report_parts(
    session: Session, title: str, found: Any, top: int, what: str = "components", **more: Any
) -> None:
    """Write the labels, and print how many there are and the largest; `what` they are called."""
    n = session.graph.n
    single, largest = largest_parts(session.graph, found.labels, top)
    session.write(found.labels)
    told = graphs.facts_of_parts(n, found.count, single, largest, what, **more)
    people = session.report(what, title, **told)
    if people and top and found.count > 1:
        graphs.print_largest(n, largest, what)


@with_options
def bfs(
    graph: Graph,
    source: Annotated[
        list[int] | None, typer.Option("-s", "--source", help="Start here; may be repeated.")
    ] = None,
    depth_limit: graphs.DepthLimit = None,
    undirected: graphs.Undirected = False,
    parents: Annotated[
        Path | None, typer.Option("--parents", metavar="FILE", help="Write the parents there.")
    ] = None,
    *,
    cluster: Cluster,
) -> None:
    """Search breadth first from one or several vertices; a result file has the levels."""
    sources = source or [0]
    options: dict[str, Any] = {"depth_limit": depth_limit, "directed": not undirected}
    with cluster.load(graph, parents) as session:
        G = session.graph
        with session.timed("searching"):
            found = matchwood.bfs(G, sources, **options)
        session.verify(matchwood.check.check_bfs, sources, found, **options)
        session.write(found.level)
        if parents is not None:
            session.write(found.parent, parents)
        sizes = level_sizes(G, found.level)
        told = graphs.facts_of_search(G.n, sources, [str(v) for v in sources], found.rounds, sizes)
        session.report("bfs", f"breadth-first search in {graph}", **told, parents=parents)


@with_options
def match(graph: Graph, rng: Rng = 0, ties: Ties = "hash", *, cluster: Cluster) -> None:
    """Find heavy edges of which no two share an end: the locally dominant ones."""
    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("matching"):
            found = matchwood.weighted_matching(G, rng=rng, ties=ties)
        session.verify(matchwood.check.check_locally_dominant, found, rng=rng, ties=ties)
        session.write(found.mate)
        facts = {
            "vertices": G.n,
            "edges": found.cardinality,
            "weight": found.weight,
            "method": found.method,
            "rounds": found.rounds,
        }
        session.report(
            "match", f"matching of {graph}",
            facts=facts,
            shown={
                **facts, "weight": f"{found.weight:g}",
                "matched": f"{2 * found.cardinality / max(1, G.n):.1%} of the vertices",
            },
        )  # fmt: skip


@with_options
def pagerank(
    graph: Graph,
    damping: matrices.Damping = 0.85,
    tol: matrices.Tol = 1e-6,
    iterations: matrices.Iterations = 100,
    weighted: matrices.Weighted = False,
    *,
    cluster: Cluster,
) -> None:
    """Score vertices by how often a random surfer comes there."""
    options: dict[str, Any] = {
        "damping": damping, "tol": tol, "max_iterations": iterations, "weighted": weighted,
    }  # fmt: skip
    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("ranking"):
            found = matchwood.pagerank(G, **options)
        session.verify(matchwood.check.check_pagerank, found, **options)
        session.write(found.scores)
        top = highest(G, found.scores, matrices.SHOWN)
        told = matrices.facts_of_ranking(G.n, found, damping, top)
        if session.report("rank", f"pagerank of {graph}", **told):
            print_table("highest scores", ("vertex", "score"), top)
        matrices.require_converged(found, "dist pagerank", tol)


@with_options
def labels(
    graph: Graph,
    rounds: Annotated[int, typer.Option("--max-rounds", min=0, help="At most.")] = 1000,
    tol: Annotated[
        float, typer.Option("--tol", help="The last round moves at most this part.")
    ] = 0.0,
    rng: Rng = 0,
    top: graphs.Top = 10,
    *,
    cluster: Cluster,
) -> None:
    """Find communities: every vertex takes the label that weighs most around it."""
    with cluster.load(graph) as session:
        with session.timed("spreading labels"):
            found = matchwood.label_propagation(session.graph, max_rounds=rounds, tol=tol, rng=rng)
        settled = tol == 0 and found.rounds < rounds
        session.verify(matchwood.check.check_label_propagation, found, settled=settled)
        report_parts(
            session, f"communities of {graph}", found, top, "communities",
            modularity=found.modularity, rounds=found.rounds, seed=rng,
        )  # fmt: skip


@with_options
def mst(
    graph: Graph,
    maximum: graphs.Maximum = False,
    *,
    cluster: Cluster,
) -> None:
    """Find the minimum spanning forest: the lightest edges that join everything.

    A result file has a row for each edge, its two ends.
    """
    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("joining vertices"):
            found = matchwood.minimum_spanning_forest(G, maximum=maximum)
        session.verify(matchwood.check.check_spanning_forest, found, maximum=maximum)
        if cluster.output is not None:
            save_edges(session.comm, cluster.output, found.edges, G.n)
        session.report("forest", **graphs.facts_of_forest(graph, found, maximum))


def info(threads: Threads = None, as_json: Json = False) -> None:
    """Say where the ranks run, by what they talk, and measure latency and bandwidth."""
    from matchwood.report.cluster import links

    with opened(threads) as comm:
        facts = matchwood.dist.describe(comm, mode="dicts")
        measured = links(comm)
        if comm.rank:
            return
        if as_json:
            print_json({**(facts or {}), "links": measured})
            return
        _show_info(facts or {}, measured)


def _show_info(facts: dict[str, Any], measured: dict[str, Any]) -> None:
    """Print the facts as two tables."""
    hosts: dict[str, list[dict[str, Any]]] = {}
    for rank in facts["ranks"]:
        hosts.setdefault(rank["host"], []).append(rank)
    print_facts(
        "ranks",
        {
            "kind": f"{facts['kind']}, {facts['size']} ranks",
            "started by": ", ".join(facts["launchers"]) or None,
            "library": facts["library"],
            **{
                host: f"{len(ranks)} ranks, threads {_list(ranks, 'threads')}"
                + (f", GPUs {_list(ranks, 'gpu')}" if ranks[0]["gpu"] is not None else "")
                for host, ranks in hosts.items()
            },
            "versions": ", ".join(f"{k} {v}" for k, v in facts["versions"].items()) or None,
            "timeout": f"{facts['timeout']:g} s",
        },
    )
    if measured["bandwidth"] is not None:
        print_facts(
            "links",
            {
                "reduction of 8 bytes": duration(measured["allreduce"]),
                "barrier": duration(measured["barrier"]),
                "to the next rank": f"{amount(int(measured['bandwidth']))}/s, all at once",
            },
        )


def _list(ranks: list[dict[str, Any]], key: str) -> str:
    found = sorted({rank[key] for rank in ranks})
    return ", ".join(map(str, found))


def bench(
    figure: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...", help="strong, weak, variants, shapes, complex; none: all."
        ),
    ] = None,
    scale: Annotated[
        int, typer.Option("--scale", min=4, help="2^SCALE vertices (weak: on each rank).")
    ] = 14,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="The median counts.")] = 3,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Threads of this process as ranks, without mpiexec."),
    ] = None,
    threads: Threads = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time graphs on more and more of the ranks, as chapter 6 of the thesis does.

    The model that is fitted to such rows, and its plot, are in bench/engines/ranks of the source.
    """
    from matchwood.arguments import one_of
    from matchwood.report import cluster as figures

    names = figure or list(figures.FIGURES)
    for name in names:
        one_of("bench", "figure", name, tuple(figures.FIGURES))
    if output is not None:
        results.check_place(output)
    asked = figures.Asked(scale, repeats)
    if ranks is not None:
        found = matchwood.dist.run(figures.run, ranks, names, asked, threads=threads or 1)[0]
        _show_bench(found, output, as_json, "threads")
        return
    with opened(threads) as comm:
        found = figures.run(comm, names, asked)
        if comm.rank == 0:
            _show_bench(found, output, as_json, comm.kind)


def _show_bench(found: dict[str, Any], output: Path | None, as_json: bool, kind: str) -> None:
    whole = {"kind": kind, "figures": found}
    if output is not None:
        results.write_json(output, whole)
    if as_json:
        print_json(whole)
        return
    heads = ("algorithm", "graph", "grid", "time", "computing", "talking", "received", "messages")
    for name, rows in found.items():
        print_table(
            name,
            heads,
            [
                (
                    f"{row['algorithm']} ({row['exchange']})" if "exchange" in row
                    else row["algorithm"],
                    row["graph"], row["grid"], duration(row["seconds"]),
                    duration(row["computing"]), duration(row["communicating"]),
                    amount(row["received"]), row["messages"],
                )
                for row in rows
            ],
        )  # fmt: skip


app = typer.Typer(
    help="Graphs spread over many processes: mpiexec -n 16 matchwood dist components web.txt",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
for _verb in (components, bfs, match, pagerank, labels, mst, info, bench):
    app.command(_verb.__name__)(_verb)
