"""Every problem, one line each: from here or against this the lists of problems are made.

The index of checks, README's table, the API page, the page of the command line, `warmup` and the
demo all name the problems.  `tests/test_house_registry.py` compares each of them with this list.
To add a problem, add it here and run that test: it names every page that does not know it yet.

Only text, so that reading it imports nothing.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A problem: its public function and where else it appears; empty where it does not."""

    function: str  # in the index: matchwood.<function>; or the module that holds several
    family: str  # matchwood.<family>
    checks: tuple[str, ...]  # in matchwood.check
    verb: str  # of the command line
    demo: str  # its short name in the demo and in `matchwood bench`
    warm: str  # how its steps of `warmup` begin
    engines: tuple[str, ...] = ("reference", "cpu", "gpu")


RANKS = ("reference", "cpu", "gpu", "ranks")
DEVICES = ("reference", "cpu", "gpu", "devices")
ALL = ("reference", "cpu", "gpu", "devices", "ranks")

PROBLEMS = (
    Entry("bfs", "traversal", ("check_bfs",), "bfs", "bfs", "bfs", RANKS),
    Entry("forest_roots", "traversal", ("check_forest_roots",), "", "", "forest roots", RANKS),
    Entry("connected_components", "components", ("check_connected_components",),
          "components", "components", "components", ALL),
    Entry("strongly_connected_components", "components", ("check_strongly_connected_components",),
          "scc", "scc", "strong components"),
    Entry("condensation", "components", ("check_condensation",), "", "", "condensation"),
    Entry("louvain", "communities", ("check_communities",), "communities", "communities",
          "communities"),
    Entry("leiden", "communities", ("check_communities",), "communities", "",
          "communities, leiden"),
    Entry("label_propagation", "communities", ("check_label_propagation",), "communities", "",
          "communities, labels", RANKS),
    Entry("modularity", "communities", ("check_modularity",), "communities", "",
          "communities, modularity"),
    Entry("maximal_independent_set", "independent", ("check_maximal_independent_set",),
          "mis", "mis", "independent set"),
    Entry("minimum_spanning_forest", "spanning", ("check_spanning_forest",),
          "mst", "mst", "spanning forest", RANKS),
    Entry("weighted_matching", "matching",
          ("check_matching", "check_locally_dominant", "check_augmented"),
          "match", "matching", "matching", ALL),
    Entry("maximal_matching", "matching", ("check_maximal_matching",),
          "match", "", "matching, maximal"),
    Entry("maximum_matching", "matching", ("check_maximum_matching",),
          "match", "", "matching, maximum, auto", ("reference", "cpu")),
    Entry("streaming_matching", "matching", ("check_matching",),
          "match", "", "matching, streaming", ("reference", "cpu")),
    Entry("matching_bound", "matching", ("check_bound",), "", "", "matching, bound",
          ("reference", "cpu")),
    Entry("coarsen", "matching", ("check_coarsening", "check_hierarchy"),
          "coarsen", "", "coarsening_hierarchy"),
    Entry("degree_factor", "factors", ("check_factor", "check_maximal_factor"),
          "factor", "factor", "factor", DEVICES),
    Entry("linear_forest", "forests", ("check_linear_forest",), "forest", "forest", "forest"),
    Entry("reverse_cuthill_mckee", "ordering", ("check_rcm_order",), "order", "rcm", "ordering"),
    Entry("permute", "ordering", ("check_permuted",), "order", "", "ordering"),
    Entry("order_measures", "ordering", ("check_measures",), "order", "", ""),
    Entry("gaps", "ordering", ("check_gaps",), "order", "", "gaps"),
    Entry("rabbit_order", "ordering", ("check_rabbit_order",), "order", "rabbit", "rabbit order"),
    Entry("shingle_order", "ordering", ("check_shingle_order",), "order", "", "shingle order"),
    Entry("layered_label_propagation_order", "ordering", ("check_layered_order",),
          "order", "", "layered order"),
    Entry("degree_order", "ordering", ("check_degree_order", "check_hub_order"),
          "order", "", "degree order"),
    Entry("refine_order", "ordering", ("check_refinement",), "order", "", "refinement"),
    Entry("locality_ordering", "ordering", (), "order", "", ""),
    Entry("pagerank", "ranking", ("check_pagerank",), "pagerank", "pagerank", "pagerank",
          RANKS),
    Entry("sense", "sensing", ("check_sensing",), "sense", "", "sensing"),
    Entry("read_capture", "sensing", ("check_capture",), "sense", "", "sensing, captures",
          ("reference", "cpu")),
    Entry("anonymize", "sensing", ("check_anonymized",), "sense", "", "sensing, anonymity"),
    Entry("traffic_matrix", "sensing", ("check_traffic_matrix",), "sense", "sensing",
          "sensing, traffic"),
    Entry("sum_matrices", "sensing", ("check_traffic_matrix",), "sense", "", "sensing, traffic"),
    Entry("traffic_statistics", "sensing", ("check_statistics",), "sense", "",
          "sensing, statistics"),
    Entry("traffic_histograms", "sensing", ("check_histograms",), "sense", "",
          "sensing, statistics"),
    Entry("sliding_statistics", "sensing", ("check_sliding",), "", "", "sensing, sliding"),
    Entry("read_archive", "sensing", ("check_archive",), "sense", "", "sensing, archives",
          ("reference", "cpu")),
    Entry("fuzzy_join", "join", ("check_fuzzy_join",), "join", "join", "join"),
    Entry("tridiagonal", "tridiagonal", ("check_tridiagonal_solution",), "", "", ""),
    Entry("preconditioners", "preconditioners", ("check_preconditioner",),
          "precondition", "", "preconditioners", ("cpu", "gpu")),
    Entry("solve", "krylov", ("check_solution",), "solve", "", "", ("cpu", "gpu")),
)  # fmt: skip


def engines_of(name: str) -> tuple[str, ...]:
    """The engines of a public function or of a check; none where the name is not listed."""
    return _ENGINES.get(name, ())


_ENGINES: dict[str, tuple[str, ...]] = {}
for _entry in PROBLEMS:
    for _name in (_entry.function, *_entry.checks):  # a check may serve several functions
        _ENGINES[_name] = (*_ENGINES.get(_name, ()), *_entry.engines)
