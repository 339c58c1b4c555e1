"""Every problem, one entry each: the lists of problems are made from here.

At run time: the index (`matchwood.<name>`), `matchwood.check`, `matchwood.sensing`, the verbs of
the command line, which engines a function offers.  By ``make lists``, whose result a test
compares: the pages `__init__.pyi`, `check.pyi` and `sensing.pyi` for type checkers, README's table,
the rows of the API page.  To add a problem, write its folder and one entry here, and run
``make lists``.

Only text, so that reading it imports nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CPU = ("reference", "cpu")
GPU = ("reference", "cpu", "gpu")
RANKS = ("reference", "cpu", "gpu", "ranks")
DEVICES = ("reference", "cpu", "gpu", "devices")
ALL = ("reference", "cpu", "gpu", "devices", "ranks")


class Entry(NamedTuple):
    """A problem: its public function and where else it appears; empty where it does not."""

    function: str  # in the index: matchwood.<function>; or the module that holds several
    folder: str  # matchwood.<folder> defines the function, matchwood.<folder>.check its checks
    about: str  # a line of the index
    also: dict[str, str] = {}  # further public names of the folder, and a line about each
    checks_at: tuple[str, ...] = ()  # in matchwood.check; "step.check_x" lies in <folder>.step
    engines: tuple[str, ...] = GPU
    finds: str = ""  # README's words; without any, the problem stands in the row above
    verb: str = ""  # of the command line
    demo: str = ""  # its short name in the demo and in `matchwood bench`
    example: dict[str, Any] = {}  # arguments of a call that are neither data nor optional
    warm: str = ""  # how the calls that meet its kernels begin (tests/kernel_calls.py)
    calls: dict[str, dict[str, Any]] = {}  # those calls: the rest of the name, and the options
    rows: tuple[str, ...] = ()  # on the API page, where these are not the names

    @property
    def family(self) -> str:
        """The page of the family: matchwood.<family>."""
        parts = self.folder.split(".")
        return parts[1] if parts[0] == "applications" else parts[0]

    @property
    def names(self) -> dict[str, str]:
        """The public names, and a line about each."""
        return {self.function: self.about, **self.also}

    @property
    def checks(self) -> tuple[str, ...]:
        """The functions of `matchwood.check` that raise, by their names."""
        names = [name.rpartition(".")[2] for name in self.checks_at]
        return tuple(name for name in names if name.startswith("check_"))


def _methods(*names: str) -> dict[str, dict[str, Any]]:
    return {name: {"method": name} for name in names}


PLAIN: dict[str, dict[str, Any]] = {"": {}}  # one call, without options

PROBLEMS = (
    Entry("bfs", "traversal.breadth_first",
          "breadth-first levels and parents from one or many sources",
          {"BFS": "what `bfs` returns"}, ("check_bfs", "is_bfs"), RANKS,
          "levels and parents of a breadth-first search from one or many vertices",
          "bfs", "bfs", {"sources": 0}, "bfs",
          {"": {}, "undirected": {"sources": [0, 1], "directed": False, "depth_limit": 2}}),
    Entry("forest_roots", "traversal.pointer_jumping",
          "the root of every vertex, by pointer jumping", {},
          ("check_forest_roots", "is_forest_roots"), RANKS,
          "the root of every vertex of a forest that is given by parents",
          warm="forest roots", calls=PLAIN),
    Entry("connected_components", "components.connected", "which vertices are joined by paths",
          {"Components": "what both kinds of components return"},
          ("check_connected_components", "is_connected_components"), ALL,
          "which vertices are joined by paths; weak components of directed graphs",
          "components", "components", {}, "components", _methods("afforest", "fastsv", "bfs")),
    Entry("strongly_connected_components", "components.strong", "which reach each other", {},
          ("check_strongly_connected_components", "is_strongly_connected_components"), GPU,
          "which vertices reach each other; the graph of these sets", "scc", "scc", {},
          "strong components", _methods("auto", "tarjan", "forward_backward", "multistep")),
    Entry("condensation", "components.strong.condensation",
          "a vertex for each of those: no cycles are left",
          {"Condensation": "what `condensation` returns"},
          ("check_condensation", "is_condensation"), warm="condensation", calls=PLAIN),
    Entry("louvain", "communities.louvain_leiden",
          "groups of high modularity: vertices move, groups contract", {},
          ("check_communities", "is_communities"), GPU,
          "communities: groups tied to each other more than to the rest; the same at every run",
          "communities", "communities", {}, "communities",
          {"": {"method": "moving"}, "joining": {"method": "joining"}}),
    Entry("leiden", "communities.louvain_leiden", "as louvain, with parts that are well connected",
          {}, ("check_communities",), verb="communities", warm="communities, leiden", calls=PLAIN),
    Entry("modularity", "communities.quality", "how good communities are", {},
          ("check_modularity",), verb="communities", warm="communities, modularity", calls=PLAIN),
    Entry("label_propagation", "communities.propagation",
          "each takes the heaviest label around it",
          {"Communities": "what `louvain`, `leiden` and `label_propagation` return"},
          ("check_label_propagation", "is_label_propagation"), RANKS,
          "communities in rounds: each vertex takes the heaviest label around it",
          "communities", warm="communities, labels", calls=PLAIN),
    Entry("partition", "partitioning.kway", "k blocks of bounded weight, few edges between them",
          {"Partition": "what both functions of this kind return"},
          ("check_partition", "is_partition"), GPU,
          "balanced blocks with few edges between them, for ranks, batches and factorisations",
          "partition", "", {"k": 2}, "partition",
          {"": {"k": 3}, "effort 2": {"k": 2, "effort": 2}}),
    Entry("refine_partition", "partitioning.kway", "blocks that exist already made better", {},
          ("check_partition",), GPU, verb="partition", warm="partition, refined", calls=PLAIN),
    Entry("maximal_independent_set", "independent", "no two neighbours, none can be added", {},
          ("check_maximal_independent_set", "is_maximal_independent_set"), GPU,
          "vertices of which no two are neighbours, and to which none can be added", "mis", "mis",
          {}, "independent set", _methods("luby", "lexicographic", "luby_sampling")),
    Entry("minimum_spanning_forest", "spanning.forest", "the lightest edges that join everything",
          {"Forest": "what `minimum_spanning_forest` returns"},
          ("check_spanning_forest", "is_spanning_forest"), RANKS,
          "the lightest (or heaviest) edges that join all that can be joined", "mst", "mst", {},
          "spanning forest", _methods("boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal")),
    Entry("weighted_matching", "matching", "a heavy matching, and how near to the best",
          {"Matching": "what all functions named ..._matching return"},
          ("check_matching", "check_locally_dominant", "augmented.check_augmented", "is_matching",
           "is_locally_dominant"), ALL,
          "a heavy matching, and a proved bound on how heavy any can be", "match", "matching", {},
          "matching", _methods("greedy", "dominant", "suitor", "augmented", "random_weighted",
                               "streaming")),
    Entry("maximal_matching", "matching", "one to which no edge can be added", {},
          ("proposal.check_maximal_matching", "is_maximal_matching"), GPU,
          "a matching to which no edge can be added, by random proposals", "match", "", {},
          "matching, maximal",
          {"": {}, "weighted": {"weighted": True}, "serial": {"method": "serial"}}),
    Entry("maximum_matching", "matching.cardinality", "as many edges as there can be", {},
          ("check_maximum_matching",), CPU,
          "a matching with as many edges as there can be, and a check that proves it", "match", "",
          {}, "matching, maximum", _methods("auto", "blossom")),
    Entry("streaming_matching", "matching", "one from a stream of edges", {}, ("check_matching",),
          CPU, "a matching of edges that come one after the other", "match",
          warm="matching, streaming"),
    Entry("matching_bound", "matching.bound", "how heavy any matching can be at most",
          {"Bound": "what `matching_bound` returns"}, ("check_bound",), CPU,
          "how heavy any matching can be at most, with a proof", warm="matching, bound"),
    Entry("coarsen", "matching.coarsening", "the graph in which matched vertices are one",
          {"Coarsening": "what `coarsen` returns", "coarsening_hierarchy": "ever coarser graphs",
           "Hierarchy": "what `coarsening_hierarchy` returns"},
          ("check_coarsening", "check_hierarchy"), GPU,
          "the graph in which matched vertices are one; ever coarser graphs",
          "coarsen", warm="coarsening_hierarchy"),
    Entry("degree_factor", "factors", "up to n strong edges at each vertex",
          {"factor": "its old name", "Factor": "what `degree_factor` returns",
           "coverage_of_order": "weight next to the diagonal"},
          ("check_factor", "is_factor", "check_maximal_factor", "is_maximal_factor"), DEVICES,
          "up to n strong edges at each vertex: [0,n]-factors", "factor", "factor", {"n": 2},
          "factor", {"": {}, "greedy": {"method": "greedy"}}),
    Entry("linear_forest", "forests", "disjoint paths of strong edges, and an order along them",
          {"tridiagonal_of": "the values of a matrix along the paths",
           "LinearForest": "what `linear_forest` returns"}, ("check_linear_forest",), GPU,
          "disjoint paths of strong edges, the order along them, the matrix along them",
          "forest", "forest", {}, "forest", _methods("splitters", "ranges", "doubling", "walk")),
    Entry("reverse_cuthill_mckee", "ordering.rcm", "an order with entries near the diagonal",
          {"cuthill_mckee": "the same, not reversed",
           "pseudo_peripheral_vertex": "a vertex at the rim, to start from",
           "rcm_ordering": "both, with measures, counters and times",
           "Ordering": "what `rcm_ordering` returns",
           "is_rcm_order": "is this the order of Cuthill and McKee?"},
          ("check_rcm_order", "is_rcm_order"), GPU,
          "an order with the entries near the diagonal; what it gives", "order", "rcm",
          warm="ordering"),
    Entry("permute", "ordering.permutation", "a matrix in another order", {}, ("check_permuted",),
          verb="order", warm="ordering"),
    Entry("order_measures", "ordering.measure", "bandwidth, profile and wavefronts at once",
          {"Measures": "what `order_measures` returns",
           "bandwidth": "largest distance of an entry from the diagonal",
           "matrix_profile": "sum of the distances of the first entries",
           "max_wavefront": "most rows active at once",
           "rms_wavefront": "root mean square of the active rows"}, ("check_measures",),
          verb="order"),
    Entry("rabbit_order", "ordering.rabbit", "communities within communities lie together", {},
          ("check_rabbit_order", "is_rabbit_order"), GPU, "orders that keep neighbours together",
          "order", "rabbit", {}, "rabbit order", PLAIN),
    Entry("shingle_order", "ordering.shingle", "vertices with common neighbours lie together", {},
          ("check_shingle_order",), verb="order", warm="shingle order", calls=PLAIN),
    Entry("layered_label_propagation_order", "ordering.llp", "labels at many resolutions", {},
          ("check_layered_order",), verb="order", warm="layered order",
          calls={"": {"gammas": (1, 0)}}),
    Entry("degree_order", "ordering.degree", "the largest degree first",
          {"hub_order": "vertices of large degree first"},
          ("check_degree_order", "is_degree_order", "check_hub_order"), verb="order",
          warm="degree order", calls=PLAIN),
    Entry("locality_ordering", "ordering.locality",
          "any of these by its name, with gaps and times",
          {"LocalityOrdering": "what `locality_ordering` returns"}, verb="order"),
    Entry("refine_order", "ordering.refine", "make an order better by swaps",
          {"Refinement": "what `refine_order` returns"}, ("check_refinement",), GPU,
          "an order made better by swaps; how far apart neighbours lie", "order",
          warm="refinement"),
    Entry("gaps", "ordering.gap", "how far apart neighbours lie, in four numbers",
          {"Gaps": "what `gaps` returns", "linear_arrangement": "sum of the lengths of edges",
           "log_arrangement": "sum of their logarithms",
           "linear_gap": "sum of the jumps from neighbour to neighbour",
           "log_gap": "sum of their logarithms"}, ("check_gaps",), verb="order", warm="gaps"),
    Entry("nested_dissection", "ordering.dissection", "separators are eliminated last",
          {"Dissection": "what `nested_dissection` returns",
           "elimination_order": "this or minimum degree, whichever takes fewer operations",
           "EliminationOrder": "what `elimination_order` returns"}, ("check_dissection",), CPU,
          "orders for factorisation with little fill; the entries of L, without computing it",
          "order", warm="dissection", calls={"": {"leaf": 5}, "rcm": {"leaf": 5, "leaves": "rcm"}}),
    Entry("minimum_degree", "ordering.minimum_degree", "the fewest neighbours first", {},
          ("check_minimum_degree",), CPU, verb="order", warm="minimum degree", calls=PLAIN),
    Entry("fill", "ordering.elimination", "entries of L and operations of an order",
          {"Fill": "what `fill` returns",
           "elimination_tree": "which column is needed by which"},
          ("check_fill", "check_elimination_tree"), CPU, verb="order", warm="fill", calls=PLAIN),
    Entry("vertex_separator", "partitioning.separator", "few vertices between two halves", {},
          ("check_separator",), CPU, "few vertices between two halves of a graph",
          warm="separator", calls=PLAIN),
    Entry("minimum_vertex_cover", "partitioning.cover", "fewest vertices that touch every edge",
          {"Cover": "what `minimum_vertex_cover` returns"}, ("check_vertex_cover",), CPU,
          "fewest vertices that touch every edge of a bipartite graph, with a proof",
          warm="vertex cover"),
    Entry("pagerank", "ranking", "where a random surfer spends the time",
          {"Ranking": "what `pagerank` returns"}, ("check_pagerank", "is_pagerank"), RANKS,
          "where a random surfer spends the time", "pagerank", "pagerank", {}, "pagerank",
          {f"{kind}{', weighted' * weighted}": {"dtype": kind, "weighted": weighted}
           for kind in ("float32", "float64") for weighted in (False, True)}),
    Entry("sense", "applications.sensing.stream", "a capture to windows, a sum and statistics",
          {"Sensing": "what `sense` returns"}, ("check_sensing",), GPU,
          "network traffic: captures larger than memory to windows, sums, statistics", "sense", "",
          {"window": 20}, "sensing", {"": {"ranges": [["10.0.0.0/8"]]}}),
    Entry("traffic_matrix", "applications.sensing.traffic",
          "packets counted by source and destination", {}, ("check_traffic_matrix",),
          verb="sense", demo="sensing", warm="sensing, traffic"),
    Entry("sum_matrices", "applications.sensing.traffic", "such matrices added up",
          {"TrafficMatrix": "what both return"}, ("check_traffic_matrix",), verb="sense",
          warm="sensing, traffic"),
    Entry("traffic_statistics", "applications.sensing.statistics",
          "the nine quantities of traffic", {"Statistics": "what `traffic_statistics` returns"},
          ("check_statistics",), verb="sense", warm="sensing, statistics",
          calls={"": {"threads": 1}, "team": {"threads": 2}}),
    Entry("traffic_histograms", "applications.sensing.statistics",
          "how many have each value, and a fit",
          {"Histograms": "what `traffic_histograms` returns"}, ("check_histograms",),
          verb="sense", warm="sensing, histograms",
          calls={"": {"threads": 1}, "team": {"threads": 2}}),
    Entry("sliding_statistics", "applications.sensing.sliding",
          "the nine quantities after every step",
          {"Sliding": "what `sliding_statistics` returns"}, ("check_sliding",), GPU,
          "nine quantities of traffic after every step of a sliding window", "", "",
          {"window": 20}, "sensing, sliding", PLAIN),
    Entry("anonymize", "applications.sensing.anonymity", "addresses that stand for others",
          {"Anonymizer": "the same for many blocks, with one key",
           "new_key": "a key in a private file"}, ("check_anonymized",), GPU,
          "addresses that stand for others: Crypto-PAn, a keyed permutation, truncation", "sense",
          warm="sensing, anonymity"),
    Entry("read_capture", "applications.sensing.capture", "all IPv4 packets of a capture",
          {"iter_capture": "the same, block after block", "write_capture": "packets as a capture",
           "Packets": "what they read and write", "Capture": "what `iter_capture` returns"},
          ("check_capture",), CPU,
          "PCAP and PCAPNG to arrays; matrices that GraphBLAS wrote; and back", "sense",
          warm="sensing, captures"),
    Entry("read_archive", "applications.sensing.archive", "matrices that GraphBLAS wrote",
          {"write_archive": "matrices that GraphBLAS reads"}, ("check_archive",), CPU,
          verb="sense", warm="sensing, archives"),
    Entry("fuzzy_join", "join", "pairs of records whose elements can be matched well",
          {"iter_fuzzy_join": "the same in blocks, for answers larger than memory",
           "Pairs": "what both return",
           "collection": "records read and tokenised once, for many joins",
           "Collection": "what `collection` returns",
           "explain": "which elements of two records match, and what the bounds say",
           "Explanation": "what `explain` returns"},
          ("matchwood.applications.join.check_fuzzy_join",), GPU,
          "pairs of sets whose elements can be matched well", "join", "join", {"delta": 0.4},
          "join"),
    Entry("tridiagonal", "tridiagonal", "solve tridiagonal systems, with pivoting",
          {"block_tridiagonal": "... of 2x2 blocks"}, ("check_tridiagonal_solution",), GPU,
          "tridiagonal systems, plain and with 2x2 blocks, with pivoting",
          rows=("tridiagonal.solve", "tridiagonal.factorize", "tridiagonal.Factorization",
                "tridiagonal.block.solve", "tridiagonal.block.factorize")),
    Entry("preconditioners", "preconditioners",
          "Jacobi, tridiagonal, along linear forests, multilevel", {},
          ("check_preconditioner", "multilevel.check_multilevel"), ("cpu", "gpu"),
          "tridiagonal preconditioners along linear forests, multilevel ones; Krylov methods",
          "precondition", warm="preconditioners",
          rows=("preconditioners.jacobi", "preconditioners.tridiagonal",
                "preconditioners.algebraic_tridiagonal",
                "preconditioners.algebraic_block_tridiagonal", "preconditioners.multilevel")),
    Entry("solve", "krylov", "solve a sparse system with one of them",
          {"solve_laplacian": "... of the Laplacian of a graph",
           "Solution": "what both return"}, ("check_solution",), ("cpu", "gpu"),
          verb="solve"),
)  # fmt: skip

# What the index has beside problems: name, module, a line about it.
OTHERS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "The graph": (
        ("graph", "gate.graph", "check and prepare a matrix once, for many calls"),
        ("Graph", "gate.graph", "what `graph` returns, and every function takes"),
        ("distribute", "gate.distributed", "place a graph on the ranks of a communicator"),
        ("DistributedGraph", "gate.distributed", "what `distribute` returns: a block a rank"),
        ("DistributedVector", "engines.ranks.vectors", "values of vertices, on their ranks"),
        ("Devices", "engines.devices", "GPUs, for graphs larger than one of them"),
    ),
    "The machine": (
        ("on_progress", "engines.cpu.crew", "a callback while kernels run"),
        ("show_config", "machine.config", "threads, caches, versions, GPU"),
        ("warmup", "machine.kernels", "compile every kernel now"),
    ),
    "Errors": (
        ("CheckFailed", "errors", "it is not right; says what and where"),
        ("EngineUnavailable", "errors", "no GPU, no CuPy, no MPI here"),
        ("RankFailed", "errors", "another process of the program failed"),
        ("OutOfMemory", "errors", "the memory a call needs is not free"),
        ("FileFormatError", "errors", "a file does not follow its format"),
    ),
    "Modules": (
        ("generators", "generators", "graphs made from a seed"),
        ("io", "io", "read and write files"),
        ("dist", "dist", "communicators: MPI, NCCL, torch.distributed, threads"),
        ("primitives", "primitives", "scan, sort, compact, frontier, union-find, ..."),
        ("check", "check", "is this answer right?  One function a problem"),
    ),
}
ELSEWHERE = {
    "Communities": "communities",
    "is_rcm_order": "ordering.rcm.check",
}  # not in the folder
SENSING = {  # names of the page matchwood.sensing that the index does not have
    "Fit": "applications.sensing.statistics",
    "Histogram": "applications.sensing.statistics",
    "Windows": "applications.sensing.statistics",
    "Ranges": "applications.sensing.packets",
    "AddressTable": "applications.sensing.packets",
    "archive_writer": "applications.sensing.archive",
}


def homes() -> dict[str, str]:
    """The module of each public name of the index; a family is its own module."""
    found = {name: entry.folder for entry in PROBLEMS for name in entry.names}
    found |= ELSEWHERE
    found |= {name: home for part in OTHERS.values() for name, home, _ in part}
    found |= {entry.family: entry.family for entry in PROBLEMS if entry.family != "krylov"}
    return {name: f"matchwood.{home}" for name, home in found.items()}


def check_homes() -> dict[str, str]:
    """The module of each name of `matchwood.check`."""
    found: dict[str, str] = {}
    for entry in PROBLEMS:
        for text in entry.checks_at:
            path, _, name = text.rpartition(".")
            home = f"matchwood.{entry.folder}.{path}".rstrip(".")
            found.setdefault(name, f"{path if path.startswith('matchwood.') else home}.check")
    return found


def sensing_homes() -> dict[str, str]:
    """The module of each name of `matchwood.sensing`."""
    found = {name: e.folder for e in PROBLEMS if e.family == "sensing" for name in e.names}
    return {name: f"matchwood.{home}" for name, home in sorted({**found, **SENSING}.items())}


def engines_of(name: str) -> tuple[str, ...]:
    """The engines of a public function or of a check; none where the name is not listed."""
    return _ENGINES.get(name, ())


_ENGINES: dict[str, tuple[str, ...]] = {}
for _entry in PROBLEMS:
    for _name in (_entry.function, *_entry.checks):  # a check may serve several functions
        _ENGINES[_name] = (*_ENGINES.get(_name, ()), *_entry.engines)
