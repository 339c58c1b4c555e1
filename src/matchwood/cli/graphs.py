"""The verbs about graphs: components, searches, forests, matchings, communities, partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.options import Beyond, Graph, Rng, Shared, Ties, report, timed, with_options
from matchwood.cli.output import print_table

# What the verbs that label components print and write.


Top = Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")]


def report_labels(
    shared: Shared, loaded: Any, taken: Any, title: str, found: Any, top: int,
    what: str = "components", **more: Any,
) -> None:  # fmt: skip
    """Write the labels, and print how many there are and the largest; `what` they are called."""
    import numpy as np

    n = len(found.labels)
    sizes = np.bincount(found.labels, minlength=found.count)
    largest = np.argsort(-sizes, kind="stable")[:top]
    parts = [(int(part), int(sizes[part])) for part in largest]
    single = int((sizes == 1).sum())
    shared.write(loaded, {"label": found.labels}, count=found.count)
    told = facts_of_parts(n, found.count, single, parts, what, **more)
    report(shared, loaded, taken, what, title, **told)
    if not shared.as_json and top and found.count > 1:
        print_largest(n, parts, what)


ONE_OF = {"components": "component", "communities": "community"}


def facts_of_parts(
    n: int, count: int, single: int, largest: list[tuple[int, int]], what: str = "components",
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """The facts for programs and for people; `largest` are (component, vertices)."""
    parts = [{ONE_OF[what]: part, "vertices": size} for part, size in largest]
    facts = {"vertices": n, what: count, "trivial": single, "largest": parts, **more}
    shown = {"vertices": n, what: count, "of one vertex": single}
    shown |= {"modularity": more["modularity"]} if "modularity" in more else {}
    return {"facts": facts, "shown": shown}


def print_largest(n: int, largest: list[tuple[int, int]], what: str = "components") -> None:
    """A table of the largest components."""
    rows = [(part, size, f"{size / n:.1%}") for part, size in largest]
    print_table("largest", (ONE_OF[what], "vertices", "share"), rows)


@with_options
def components(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, afforest, fastsv or bfs.")
    ] = "auto",
    top: Top = 10,
    *,
    beyond: Beyond,
    shared: Shared,
) -> None:
    """Find the connected components of a graph (of a directed one: the weak components)."""
    where = beyond.where(shared)
    loaded = shared.load(graph)
    with timed("finding components") as taken:
        A = loaded.matrix if beyond.devices is None else matchwood.graph(loaded.matrix)
        found = matchwood.connected_components(A, method=method, **where)
    beyond.write(found.stats)
    shared.verify(matchwood.check.check_connected_components, loaded.matrix, found)
    report_labels(shared, loaded, taken, f"components of {graph}", found, top)


@with_options
def scc(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, tarjan, forward_backward, multistep or propagation (GPU)."
        ),
    ] = "auto",
    top: Top = 10,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Number the components in topological order.")
    ] = False,
    *,
    shared: Shared,
) -> None:
    """Find the strongly connected components: vertices that reach each other along the arcs."""
    loaded = shared.load(graph)
    find: Any = matchwood.strongly_connected_components
    check = matchwood.check.check_strongly_connected_components
    if ordered:
        find, check = matchwood.condensation, matchwood.check.check_condensation
    with timed("finding strong components") as taken:
        found = find(loaded.matrix, method=method, **shared.where)
    shared.verify(check, loaded.matrix, found)
    title = f"strong components of {graph}"
    report_labels(shared, loaded, taken, title, found, top, ordered=ordered)


METHODS = ("louvain", "leiden", "labels")


@with_options
def communities(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="louvain, leiden or labels (label propagation).")
    ] = "louvain",
    resolution: Annotated[
        float, typer.Option("--resolution", help="Larger: more and smaller communities.")
    ] = 1.0,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Of louvain: the least a level must gain.")
    ] = 0.0,
    rng: Rng = 0,
    top: Top = 10,
    *,
    shared: Shared,
) -> None:
    """Find communities: groups of vertices tied to each other more than to the rest."""
    from matchwood.arguments import one_of, real

    one_of("communities", "method", method, METHODS)
    real("communities", "resolution", resolution, 0)
    if method == "labels" and resolution != 1.0:
        raise ValueError("communities: resolution must be 1 for labels, which have none")
    if tolerance != 0.0 and method != "louvain":
        raise ValueError(f"communities: tolerance is for louvain, got {method}")
    loaded = shared.load(graph)
    held_to: dict[str, Any] = {} if method == "labels" else {"resolution": resolution}
    find: Any = matchwood.label_propagation if method == "labels" else getattr(matchwood, method)
    check: Any = matchwood.check.check_communities
    if method == "labels":
        check = matchwood.check.check_label_propagation
    with timed("finding communities") as taken:
        more = {"tolerance": tolerance} if tolerance else {}
        found = find(loaded.matrix, rng=rng, **held_to, **more, **shared.where)
    shared.verify(check, loaded.matrix, found, **held_to)
    report_labels(
        shared, loaded, taken, f"communities of {graph}", found, top, "communities",
        method=method, seed=rng, modularity=found.modularity, rounds=found.rounds,
    )  # fmt: skip


@with_options
def partition(
    graph: Graph,
    blocks: Annotated[int, typer.Option("-k", "--blocks", min=1, help="Number of blocks.")] = 2,
    imbalance: Annotated[
        float, typer.Option("--imbalance", help="How much heavier than its target a block may be.")
    ] = 0.03,
    effort: Annotated[
        int, typer.Option("--effort", min=0, max=3, help="0 fast, 1 usual, 2 and 3 better.")
    ] = 1,
    connected: Annotated[
        bool, typer.Option("--connected", help="Stray pieces join blocks with room.")
    ] = False,
    rng: Rng = 0,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the entries, sorted by block."),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Cut a graph into blocks of about equal size with few edges between them.

    A result file that ends in .txt is as METIS writes it: the block of each vertex, one a line.
    """
    if plot is not None:
        results.check_place(plot, "--plot")
    loaded = shared.load(graph)
    with timed("cutting the graph") as taken:
        found = matchwood.partition(
            loaded.matrix, blocks, imbalance=imbalance, effort=effort, connected=connected,
            rng=rng, **shared.where,
        )  # fmt: skip
    shared.verify(matchwood.check.check_partition, loaded.matrix, found, imbalance=imbalance)
    shared.write(loaded, {"label": found.labels}, cut=found.cut, k=found.k)
    if plot is not None:
        _draw_blocks(loaded.matrix, found, plot)
    facts = {
        "vertices": len(found.labels), "blocks": found.k, "cut": found.cut,
        "heaviest": found.weights.max().item(), "limit": found.limits.max().item(),
        "excess": found.excess, "boundary": int(found.boundary.size), "volume": found.volume,
        "pieces": int(found.pieces.sum()), "effort": effort, "seed": rng,
    }  # fmt: skip
    shown = {
        "vertices": facts["vertices"], "blocks": found.k, "cut": found.cut,
        "heaviest block": f"{facts['heaviest']}, limit {facts['limit']}",
        "vertices at the boundary": facts["boundary"], "communication volume": found.volume,
        "connected pieces": facts["pieces"],
    }  # fmt: skip
    report(
        shared, loaded, taken, "partition", f"{found.k} blocks of {graph}", facts=facts,
        shown=shown, phases=found.seconds, plot=plot,
    )  # fmt: skip


def _draw_blocks(A: Any, found: Any, path: Path) -> None:
    """The entries in the order of the blocks: inside a block in its colour, others in black."""
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            f"--plot {path}: drawing needs matplotlib, pip install 'matchwood[plot]'"
        ) from None
    import numpy as np

    from matchwood.io.files import replacing

    order = np.argsort(found.labels, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    coo = A.tocoo()
    own = found.labels[coo.row]
    inside = own == found.labels[coo.col]
    figure = Figure(figsize=(6, 6.3), layout="constrained")
    ax = figure.subplots()
    size = max(0.05, min(4.0, 300 / max(1, order.size)))
    palette = colormaps["tab20"](np.arange(20))[:, :3]
    colours = np.where(inside[:, None], palette[own % 20], 0.0)
    ax.scatter(place[coo.col], place[coo.row], s=size**2, c=colours, marker="s", linewidths=0)
    ax.set(xlim=(-0.5, order.size - 0.5), ylim=(order.size - 0.5, -0.5), aspect="equal")
    ax.set(xticks=[], yticks=[], title=f"{found.k} blocks, cut {found.cut}")
    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)


DepthLimit = Annotated[
    int | None, typer.Option("--depth-limit", help="Go no deeper than this level.")
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Follow arcs in both directions.")]
SHOWN = 12  # levels in the table; of more, the first and the last are shown


@with_options
def bfs(
    graph: Graph,
    source: Annotated[
        list[str] | None, typer.Option("-s", "--source", help="Start here; may be repeated.")
    ] = None,
    depth_limit: DepthLimit = None,
    undirected: Undirected = False,
    *,
    shared: Shared,
) -> None:
    """Search breadth first from one or several vertices: levels and parents."""
    loaded = shared.load(graph)
    import numpy as np

    A = loaded.matrix
    sources = [loaded.vertex(text) for text in source] if source else [0]
    options: dict[str, Any] = {"depth_limit": depth_limit, "directed": not undirected}
    with timed("searching") as taken:
        found = matchwood.bfs(A, sources, **options, **shared.where)
    shared.verify(matchwood.check.check_bfs, A, sources, found, **options)
    shared.write(loaded, {"level": found.level, "parent": found.parent}, rounds=found.rounds)
    sizes = np.bincount(found.level[found.level >= 0]).tolist()
    told = facts_of_search(len(found.level), sources, source or ["0"], found.rounds, sizes)
    report(shared, loaded, taken, "bfs", f"breadth-first search in {graph}", **told)
    if not shared.as_json:
        print_table("levels", ("level", "vertices", "so far"), _rows(sizes))


def facts_of_search(
    n: int, sources: list[Any], names: list[str], rounds: int, sizes: list[int]
) -> dict[str, Any]:
    """The facts for programs and for people; `sizes` are those of the levels."""
    reached = sum(sizes)
    facts = {
        "vertices": n,
        "sources": sources,
        "reached": reached,
        "rounds": rounds,
        "level_sizes": sizes,
    }
    shown = {
        "vertices": n,
        "sources": ", ".join(names),
        "reached": f"{reached:,} ({reached / max(1, n):.1%})",
        "deepest level": len(sizes) - 1,
    }
    return {"facts": facts, "shown": shown}


def _rows(sizes: list[int]) -> list[tuple[str, str, str]]:
    """A row for each level; of many levels the first, the last and dots between."""
    total, so_far = sum(sizes), 0
    rows: list[tuple[str, str, str]] = []
    for level, size in enumerate(sizes):
        so_far += size
        rows.append((f"{level}", f"{size:,}", f"{so_far / total:.1%}"))
    if len(rows) > SHOWN:
        half = SHOWN // 2
        rows[half:-half] = [("...", "", "")]
    return rows


@with_options
def mis(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, luby, lexicographic or luby_sampling.")
    ] = "auto",
    rng: Rng = 0,
    *,
    shared: Shared,
) -> None:
    """Find a maximal independent set: no two neighbours, and no vertex can be added."""
    loaded = shared.load(graph)
    options: dict[str, Any] = {"method": method, "rng": rng}
    with timed("choosing vertices") as taken:
        members = matchwood.maximal_independent_set(loaded.matrix, **options, **shared.where)
    check = matchwood.check.check_maximal_independent_set
    shared.verify(check, loaded.matrix, members, **options)
    n, count = len(members), int(members.sum())
    shared.write(loaded, {"member": members.astype(int)}, count=count)
    report(
        shared, loaded, taken, "set", f"independent set of {graph}",
        facts={"vertices": n, "members": count, "method": method, "seed": rng},
        shown={"vertices": n, "members": count, "share": f"{count / n:.1%}" if n else None},
    )  # fmt: skip


Maximum = Annotated[bool, typer.Option("--maximum", help="The heaviest forest.")]


@with_options
def mst(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, boruvka, awerbuch_shiloach, kruskal or filter_kruskal."
        ),
    ] = "auto",
    maximum: Maximum = False,
    *,
    shared: Shared,
) -> None:
    """Find the minimum spanning forest: the lightest edges that join everything.

    A result file has a line for each edge: its two ends and its weight.
    """
    loaded = shared.load(graph)
    with timed("joining vertices") as taken:
        found = matchwood.minimum_spanning_forest(
            loaded.matrix, method=method, maximum=maximum, **shared.where
        )
    check = matchwood.check.check_spanning_forest
    shared.verify(check, loaded.matrix, found, maximum=maximum)
    if shared.output is not None:
        _write(shared.output, found, loaded.ids)
    report(shared, loaded, taken, "forest", **facts_of_forest(graph, found, maximum))


def facts_of_forest(graph: str, found: Any, maximum: bool) -> dict[str, Any]:
    """The title, and the facts for programs and for people."""
    shown = {
        "vertices": found.n,
        "edges": found.n - found.components,
        "components": found.components,
    }
    return {
        "title": f"{'maximum' if maximum else 'minimum'} spanning forest of {graph}",
        "facts": {**shown, "total": found.total, "maximum": maximum, "rounds": found.rounds},
        "shown": {**shown, "total weight": f"{found.total:,}"},
    }


def _write(path: Path, found: Any, ids: Any) -> None:
    """Edges as an array (.npy), with weights (.npz), or as lines (.txt, .csv with the ids)."""
    if path.suffix == ".npy":
        results.save(path, found.edges)
        return
    if path.suffix == ".npz":
        named = {"edges": found.edges, "weights": found.weights, "total": found.total}
        results.save_named(path, named, ids)
        return
    ends = [[str(v) for v in edge] for edge in found.edges.tolist()]
    if path.suffix == ".csv" and ids is not None:
        ends = [[results.quoted(ids[v]) for v in edge] for edge in found.edges.tolist()]
    weights = map(str, found.weights.tolist())
    separator, header = (" ", "") if path.suffix == ".txt" else (",", "u,v,weight\n")
    lines = (separator.join((*edge, w)) for edge, w in zip(ends, weights, strict=True))
    results.write_text(path, header + "".join(f"{line}\n" for line in lines))


LARGEST = ("hopcroft_karp", "blossom")  # methods of maximum_matching, which ignores weights
MAXIMAL = ("proposal", "serial")  # methods of maximal_matching, which ignores weights


@with_options
def match(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, greedy, dominant, suitor, augmented, streaming, random_weighted or exact: "
            "a heavy matching.  proposal or serial: a maximal one, weights not looked at.",
        ),
    ] = "auto",
    maximum: Annotated[
        bool,
        typer.Option(
            "--maximum", help="As many edges as there can be, by hopcroft_karp or blossom."
        ),
    ] = False,
    rng: Rng = 0,
    ties: Ties = "hash",
    prefer: Annotated[
        str,
        typer.Option(
            "--prefer",
            help="With proposal or serial: the neighbour that is chosen; random, hash or degree. "
            "The last two find more edges, and take longer.",
        ),
    ] = "random",
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="With augmented: how many at most; one wins most of it."),
    ] = None,
    *,
    beyond: Beyond,
    shared: Shared,
) -> None:
    """Find heavy edges of which no two share an end, and how near to the best they are."""
    where = beyond.where(shared)
    loaded = shared.load(graph)
    if prefer != "random" and (maximum or method not in MAXIMAL):
        raise ValueError(f"match: --prefer needs --method proposal or serial, got {method}")
    if ties != "hash" and (maximum or method in (*MAXIMAL, *LARGEST)):
        raise ValueError("match: --ties is for heavy matchings: others do not look at weights")
    if rounds is not None and (maximum or method != "augmented"):
        raise ValueError(f"match: --rounds needs --method augmented, got {method}")
    options = {"method": method, "rng": rng, **where}
    with timed("matching") as taken:
        if maximum or method in LARGEST:
            found = matchwood.maximum_matching(loaded.matrix, method=method, **where)
        elif method in MAXIMAL:
            found = matchwood.maximal_matching(loaded.matrix, prefer=prefer, **options)
        else:
            found = matchwood.weighted_matching(loaded.matrix, ties=ties, rounds=rounds, **options)
    beyond.write(found.stats)
    shared.verify(found.check, loaded.matrix)  # what the method promises
    shared.write(loaded, {"mate": found.mate}, weight=found.weight)
    n = len(found.mate)
    report(
        shared, loaded, taken, "match", f"matching of {graph}",
        facts={
            "vertices": n, "edges": found.cardinality, "weight": found.weight, "bound": found.bound,
            "quality": found.quality, "method": found.method, "rounds": found.rounds,
        },
        shown={
            "vertices": n, "edges": found.cardinality,
            "matched": f"{2 * found.cardinality / max(1, n):.1%} of the vertices",
            "weight": f"{found.weight:g}", "of the best": f"at least {found.quality:.1%}",
            "method": found.method, "rounds": found.rounds,
        },
    )  # fmt: skip


@with_options
def factor(
    graph: Graph,
    n: Annotated[int, typer.Option("-n", min=1, help="Neighbours of a vertex at most.")] = 2,
    method: Annotated[str, typer.Option("--method", help="auto, parallel or greedy.")] = "auto",
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, help="Rounds at most; 0: until maximal.")
    ] = 5,
    period: Annotated[
        int, typer.Option("--period", min=1, help="Charges are off once in this many rounds.")
    ] = 5,
    uncharged: Annotated[
        int, typer.Option("--uncharged", min=0, help="In which of them charges are off: 0, 1, ...")
    ] = 0,
    charge_probability: Annotated[
        float, typer.Option("--charge-probability", help="Probability of a positive charge.")
    ] = 0.5,
    ties: Ties = "hash",
    rng: Rng = 0,
    *,
    beyond: Beyond,
    shared: Shared,
) -> None:
    """Choose strong edges such that every vertex has at most n of them."""
    where = beyond.where(shared)
    loaded = shared.load(graph)
    with timed("choosing edges") as taken:
        found = matchwood.degree_factor(
            loaded.matrix, n, method=method, rounds=rounds or None, period=period,
            uncharged=uncharged, charge_probability=charge_probability, rng=rng, ties=ties,
            **where,
        )  # fmt: skip
    beyond.write(found.stats)
    shared.verify(found.check, loaded.matrix)  # also maximal, where it says so
    columns = {f"neighbour{k + 1}": found.neighbours[:, k] for k in range(n)}
    shared.write(loaded, columns, coverage=found.coverage)
    vertices, edges = len(found.neighbours), int((found.neighbours >= 0).sum()) // 2
    report(
        shared, loaded, taken, "factor", f"[0,{n}]-factor of {graph}",
        facts={
            "vertices": vertices, "n": n, "edges": edges, "weight": found.weight,
            "coverage": found.coverage, "rounds": found.rounds, "maximal": found.maximal,
        },
        shown={
            "vertices": vertices, "edges": edges, "coverage": f"{found.coverage:.1%} of the weight",
            "rounds": found.rounds, "maximal": "yes" if found.maximal else "not known",
        },
    )  # fmt: skip


@with_options
def forest(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, splitters, ranges, doubling or walk.")
    ] = "auto",
    rounds: Annotated[int, typer.Option("--rounds", "-M", min=0, help="Rounds of the factor.")] = 5,
    ties: Ties = "hash",
    rng: Rng = 0,
    *,
    shared: Shared,
) -> None:
    """Find a linear forest: disjoint paths of strong edges that hold every vertex.

    A result file has, for each vertex, its path, its position there, and its place in the order.
    """
    loaded = shared.load(graph)
    import numpy as np

    with timed("following paths") as taken:
        found = matchwood.linear_forest(
            loaded.matrix, method=method, rounds=rounds, ties=ties, rng=rng, **shared.where
        )
    shared.verify(matchwood.check.check_linear_forest, loaded.matrix, found)
    columns = {"path": found.path, "position": found.position, "place": found.place}
    shared.write(loaded, columns, coverage=found.coverage)
    before = matchwood.coverage_of_order(loaded.matrix)
    n, longest = len(found.perm), int(np.diff(found.offsets).max(initial=0))
    report(
        shared, loaded, taken, "forest", f"linear forest of {graph}",
        facts={
            "vertices": n, "paths": found.count, "longest": longest, "cycles": len(found.removed),
            "weight": found.weight, "coverage": found.coverage, "coverage_of_order": before,
        },
        shown={
            "vertices": n, "paths": found.count, "longest path": longest,
            "cycles cut": len(found.removed),
            "coverage": f"{found.coverage:.1%} of the weight, {before:.1%} in the order as given",
        },
        phases=found.seconds,
    )  # fmt: skip


@with_options
def coarsen(
    graph: Graph,
    until: Annotated[int, typer.Option("--until", min=1, help="Vertices at the end, at most.")] = (
        100
    ),
    method: Annotated[
        str, typer.Option("--method", help="A method of weighted matching, proposal or random.")
    ] = "auto",
    rng: Rng = 0,
    ties: Ties = "hash",
    coarsest: Annotated[
        Path | None,
        typer.Option("--coarsest", metavar="FILE", help="Write the coarsest graph: any format."),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Merge matched vertices, level by level, until few are left.

    -o writes for every vertex the vertex of the coarsest graph that it went to.
    """
    if coarsest is not None:
        results.check_graph_file(coarsest, "--coarsest", inputs=[graph])
    loaded = shared.load(graph)
    from matchwood.check import check_hierarchy

    with timed("coarsening") as taken:
        found = matchwood.coarsening_hierarchy(
            loaded.matrix, until=until, method=method, rng=rng, ties=ties, **shared.where
        )
    shared.verify(check_hierarchy, loaded.matrix, found)
    edges = [level.matrix.nnz // 2 for level in found]
    shared.write(loaded, {"part": found.map}, parts=found.sizes[-1])
    if coarsest is not None:
        last = found.levels[-1].matrix if len(found) else loaded.matrix
        matchwood.io.write(coarsest, last)
    report(
        shared, loaded, taken, "coarsen", f"hierarchy of {graph}",
        facts={"sizes": found.sizes, "edges": edges},
        shown={"levels": len(found)},
        coarsest=coarsest,
    )  # fmt: skip
    if not shared.as_json:
        print_table(
            "levels",
            ("vertices", "edges", "largest weight of a vertex"),
            [
                (size, m, int(level.vertex_weights.max()))
                for size, m, level in zip(found.sizes[1:], edges, found, strict=True)
            ],
        )
