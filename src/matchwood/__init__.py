"""Structure in large sparse graphs and matrices, on CPU threads and GPUs, with one answer.

This page is the index: every public name, one line each, by family.  A name is imported when it
is first used.  Read gate/graph.py next (what goes in), then engines/__init__.py (where it runs),
then any problem folder: they all have the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach
from matchwood._version import __version__ as __version__

_HOMES = {
    # the graph
    "graph": "matchwood.gate.graph",  # check and prepare a matrix once, for many calls
    "Graph": "matchwood.gate.graph",  # what `graph` returns, and every function takes
    "distribute": "matchwood.gate.distributed",  # place a graph on the ranks of a communicator
    "DistributedGraph": "matchwood.gate.distributed",  # what `distribute` returns: a block a rank
    "DistributedVector": "matchwood.engines.ranks.vectors",  # values of vertices, on their ranks
    "Devices": "matchwood.engines.devices",  # GPUs, for graphs larger than one of them
    # traversal
    "bfs": "matchwood.traversal",  # breadth-first levels and parents from one or many sources
    "BFS": "matchwood.traversal",  # what `bfs` returns
    "forest_roots": "matchwood.traversal",  # the root of every vertex, by pointer jumping
    # components
    "connected_components": "matchwood.components",  # which vertices are joined by paths
    "strongly_connected_components": "matchwood.components",  # which reach each other
    "Components": "matchwood.components",  # what both return
    "condensation": "matchwood.components",  # a vertex for each of those: no cycles are left
    "Condensation": "matchwood.components",  # what `condensation` returns
    # communities
    "louvain": "matchwood.communities",  # groups of high modularity: vertices move, groups contract
    "leiden": "matchwood.communities",  # as louvain, with parts that are well connected
    "label_propagation": "matchwood.communities",  # each takes the heaviest label around it
    "modularity": "matchwood.communities",  # how good communities are
    "Communities": "matchwood.communities",  # what the first three return
    # independent sets
    "maximal_independent_set": "matchwood.independent",  # no two neighbours, none can be added
    # spanning
    "minimum_spanning_forest": "matchwood.spanning",  # the lightest edges that join everything
    "Forest": "matchwood.spanning",  # what `minimum_spanning_forest` returns
    # matching
    "weighted_matching": "matchwood.matching",  # a heavy matching, and how near to the best
    "maximal_matching": "matchwood.matching",  # one to which no edge can be added
    "maximum_matching": "matchwood.matching",  # as many edges as there can be
    "streaming_matching": "matchwood.matching",  # one from a stream of edges
    "Matching": "matchwood.matching",  # what all three return
    "matching_bound": "matchwood.matching",  # how heavy any matching can be at most
    "Bound": "matchwood.matching",  # what `matching_bound` returns
    "coarsen": "matchwood.matching",  # the graph in which matched vertices are one
    "Coarsening": "matchwood.matching",  # what `coarsen` returns
    "coarsening_hierarchy": "matchwood.matching",  # ever coarser graphs
    "Hierarchy": "matchwood.matching",  # what `coarsening_hierarchy` returns
    # factors
    "degree_factor": "matchwood.factors",  # up to n strong edges at each vertex
    "factor": "matchwood.factors",  # its old name
    "Factor": "matchwood.factors",  # what `degree_factor` returns
    "coverage_of_order": "matchwood.factors",  # weight next to the diagonal
    # forests
    "linear_forest": "matchwood.forests",  # disjoint paths of strong edges, and an order along them
    "tridiagonal_of": "matchwood.forests",  # the values of a matrix along the paths
    "LinearForest": "matchwood.forests",  # what `linear_forest` returns
    # linear systems
    "tridiagonal": "matchwood.tridiagonal",  # solve tridiagonal systems, with pivoting
    "block_tridiagonal": "matchwood.tridiagonal",  # ... of 2x2 blocks
    "preconditioners": "matchwood.preconditioners",  # Jacobi, tridiagonal, along linear forests
    "solve": "matchwood.krylov",  # solve a sparse system with one of them
    "Solution": "matchwood.krylov",  # what `solve` returns
    # ordering
    "reverse_cuthill_mckee": "matchwood.ordering",  # an order with entries near the diagonal
    "cuthill_mckee": "matchwood.ordering",  # the same, not reversed
    "pseudo_peripheral_vertex": "matchwood.ordering",  # a vertex at the rim, to start from
    "rcm_ordering": "matchwood.ordering",  # both, with measures, counters and times
    "Ordering": "matchwood.ordering",  # what `rcm_ordering` returns
    "permute": "matchwood.ordering",  # a matrix in another order
    "order_measures": "matchwood.ordering",  # bandwidth, profile and wavefronts at once
    "Measures": "matchwood.ordering",  # what `order_measures` returns
    "bandwidth": "matchwood.ordering",  # largest distance of an entry from the diagonal
    "matrix_profile": "matchwood.ordering",  # sum of the distances of the first entries
    "max_wavefront": "matchwood.ordering",  # most rows active at once
    "rms_wavefront": "matchwood.ordering",  # root mean square of the active rows
    "is_rcm_order": "matchwood.ordering",  # is this the order of Cuthill and McKee?
    "rabbit_order": "matchwood.ordering",  # communities within communities lie together
    "shingle_order": "matchwood.ordering",  # vertices with common neighbours lie together
    "layered_label_propagation_order": "matchwood.ordering",  # labels at many resolutions
    "degree_order": "matchwood.ordering",  # the largest degree first
    "hub_order": "matchwood.ordering",  # vertices of large degree first
    "refine_order": "matchwood.ordering",  # make an order better by swaps
    "Refinement": "matchwood.ordering",  # what `refine_order` returns
    "locality_ordering": "matchwood.ordering",  # any of these by its name, with gaps and times
    "LocalityOrdering": "matchwood.ordering",  # what `locality_ordering` returns
    "gaps": "matchwood.ordering",  # how far apart neighbours lie, in four numbers
    "Gaps": "matchwood.ordering",  # what `gaps` returns
    "linear_arrangement": "matchwood.ordering",  # sum of the lengths of edges
    "log_arrangement": "matchwood.ordering",  # sum of their logarithms
    "linear_gap": "matchwood.ordering",  # sum of the jumps from neighbour to neighbour
    "log_gap": "matchwood.ordering",  # sum of their logarithms
    # ranking
    "pagerank": "matchwood.ranking",  # where a random surfer spends the time
    "Ranking": "matchwood.ranking",  # what `pagerank` returns
    # network traffic
    "sense": "matchwood.sensing",  # a capture to windows, a sum and statistics
    "Sensing": "matchwood.sensing",  # what `sense` returns
    "read_capture": "matchwood.sensing",  # all IPv4 packets of a capture
    "iter_capture": "matchwood.sensing",  # the same, block after block
    "write_capture": "matchwood.sensing",  # packets as a capture
    "Packets": "matchwood.sensing",  # what they read and write
    "Capture": "matchwood.sensing",  # what `iter_capture` returns
    "anonymize": "matchwood.sensing",  # addresses that stand for others
    "Anonymizer": "matchwood.sensing",  # the same for many blocks, with one key
    "new_key": "matchwood.sensing",  # a key in a private file
    "traffic_matrix": "matchwood.sensing",  # packets counted by source and destination
    "sum_matrices": "matchwood.sensing",  # such matrices added up
    "TrafficMatrix": "matchwood.sensing",  # what both return
    "traffic_statistics": "matchwood.sensing",  # the nine quantities of traffic
    "Statistics": "matchwood.sensing",  # what `traffic_statistics` returns
    "traffic_histograms": "matchwood.sensing",  # how many have each value, and a fit
    "Histograms": "matchwood.sensing",  # what `traffic_histograms` returns
    "sliding_statistics": "matchwood.sensing",  # the nine quantities after every step
    "Sliding": "matchwood.sensing",  # what `sliding_statistics` returns
    "read_archive": "matchwood.sensing",  # matrices that GraphBLAS wrote
    "write_archive": "matchwood.sensing",  # matrices that GraphBLAS reads
    # joins of sets
    "fuzzy_join": "matchwood.join",  # pairs of records whose elements can be matched well
    "iter_fuzzy_join": "matchwood.join",  # the same in blocks, for answers larger than memory
    "Pairs": "matchwood.join",  # what both return
    "collection": "matchwood.join",  # records read and tokenised once, for many joins
    "Collection": "matchwood.join",  # what `collection` returns
    "explain": "matchwood.join",  # which elements of two records match, and what the bounds say
    "Explanation": "matchwood.join",  # what `explain` returns
    # graphs in and out
    "generators": "matchwood.generators",  # graphs made from a seed
    "io": "matchwood.io",  # read and write files
    # many processes
    "dist": "matchwood.dist",  # communicators: MPI, NCCL, torch.distributed, threads
    # what the problems are built from
    "primitives": "matchwood.primitives",  # scan, sort, compact, frontier, union-find, ...
    # trust
    "check": "matchwood.check",  # is this answer right?  One function a problem
    "CheckFailed": "matchwood.errors",  # it is not; says what and where
    "EngineUnavailable": "matchwood.errors",  # no GPU, no CuPy, no MPI here
    "RankFailed": "matchwood.errors",  # another process of the program failed
    "OutOfMemory": "matchwood.errors",  # the memory a call needs is not free
    "FileFormatError": "matchwood.errors",  # a file does not follow its format
    # the machine
    "on_progress": "matchwood.engines.cpu.crew",  # a callback while kernels run
    "show_config": "matchwood.machine.config",  # threads, caches, versions, GPU
    "warmup": "matchwood.machine.warm",  # compile every kernel now
    # families, as modules
    "communities": "matchwood.communities",
    "components": "matchwood.components",
    "factors": "matchwood.factors",
    "forests": "matchwood.forests",
    "independent": "matchwood.independent",
    "join": "matchwood.join",
    "matching": "matchwood.matching",
    "ordering": "matchwood.ordering",
    "ranking": "matchwood.ranking",
    "sensing": "matchwood.sensing",
    "spanning": "matchwood.spanning",
    "traversal": "matchwood.traversal",
}

_OLD = {  # names of the last release: they still work, with a DeprecationWarning
    "measures": "order_measures",
    "profile": "matrix_profile",
    "multilevel": "coarsening_hierarchy",
    "upper_bound": "matching_bound",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from matchwood import check as check
    from matchwood import communities as communities
    from matchwood import components as components
    from matchwood import dist as dist
    from matchwood import factors as factors
    from matchwood import forests as forests
    from matchwood import generators as generators
    from matchwood import independent as independent
    from matchwood import io as io
    from matchwood import join as join
    from matchwood import matching as matching
    from matchwood import ordering as ordering
    from matchwood import preconditioners as preconditioners
    from matchwood import primitives as primitives
    from matchwood import ranking as ranking
    from matchwood import sensing as sensing
    from matchwood import spanning as spanning
    from matchwood import traversal as traversal
    from matchwood import tridiagonal as tridiagonal
    from matchwood.communities import Communities as Communities
    from matchwood.communities import label_propagation as label_propagation
    from matchwood.communities import leiden as leiden
    from matchwood.communities import louvain as louvain
    from matchwood.communities import modularity as modularity
    from matchwood.components import Components as Components
    from matchwood.components import Condensation as Condensation
    from matchwood.components import condensation as condensation
    from matchwood.components import connected_components as connected_components
    from matchwood.components import (
        strongly_connected_components as strongly_connected_components,
    )
    from matchwood.engines.cpu.crew import on_progress as on_progress
    from matchwood.engines.devices import Devices as Devices
    from matchwood.engines.ranks.vectors import DistributedVector as DistributedVector
    from matchwood.errors import CheckFailed as CheckFailed
    from matchwood.errors import EngineUnavailable as EngineUnavailable
    from matchwood.errors import FileFormatError as FileFormatError
    from matchwood.errors import OutOfMemory as OutOfMemory
    from matchwood.errors import RankFailed as RankFailed
    from matchwood.factors import Factor as Factor
    from matchwood.factors import coverage_of_order as coverage_of_order
    from matchwood.factors import degree_factor as degree_factor
    from matchwood.factors import factor as factor
    from matchwood.forests import LinearForest as LinearForest
    from matchwood.forests import linear_forest as linear_forest
    from matchwood.forests import tridiagonal_of as tridiagonal_of
    from matchwood.gate.distributed import DistributedGraph as DistributedGraph
    from matchwood.gate.distributed import distribute as distribute
    from matchwood.gate.graph import Graph as Graph
    from matchwood.gate.graph import graph as graph
    from matchwood.independent import maximal_independent_set as maximal_independent_set
    from matchwood.join import Collection as Collection
    from matchwood.join import Explanation as Explanation
    from matchwood.join import Pairs as Pairs
    from matchwood.join import collection as collection
    from matchwood.join import explain as explain
    from matchwood.join import fuzzy_join as fuzzy_join
    from matchwood.join import iter_fuzzy_join as iter_fuzzy_join
    from matchwood.krylov import Solution as Solution
    from matchwood.krylov import solve as solve
    from matchwood.machine.config import show_config as show_config
    from matchwood.machine.warm import warmup as warmup
    from matchwood.matching import Bound as Bound
    from matchwood.matching import Coarsening as Coarsening
    from matchwood.matching import Hierarchy as Hierarchy
    from matchwood.matching import Matching as Matching
    from matchwood.matching import coarsen as coarsen
    from matchwood.matching import coarsening_hierarchy as coarsening_hierarchy
    from matchwood.matching import matching_bound as matching_bound
    from matchwood.matching import maximal_matching as maximal_matching
    from matchwood.matching import maximum_matching as maximum_matching
    from matchwood.matching import streaming_matching as streaming_matching
    from matchwood.matching import weighted_matching as weighted_matching
    from matchwood.ordering import Gaps as Gaps
    from matchwood.ordering import LocalityOrdering as LocalityOrdering
    from matchwood.ordering import Measures as Measures
    from matchwood.ordering import Ordering as Ordering
    from matchwood.ordering import Refinement as Refinement
    from matchwood.ordering import bandwidth as bandwidth
    from matchwood.ordering import cuthill_mckee as cuthill_mckee
    from matchwood.ordering import degree_order as degree_order
    from matchwood.ordering import gaps as gaps
    from matchwood.ordering import hub_order as hub_order
    from matchwood.ordering import is_rcm_order as is_rcm_order
    from matchwood.ordering import (
        layered_label_propagation_order as layered_label_propagation_order,
    )
    from matchwood.ordering import linear_arrangement as linear_arrangement
    from matchwood.ordering import linear_gap as linear_gap
    from matchwood.ordering import locality_ordering as locality_ordering
    from matchwood.ordering import log_arrangement as log_arrangement
    from matchwood.ordering import log_gap as log_gap
    from matchwood.ordering import matrix_profile as matrix_profile
    from matchwood.ordering import max_wavefront as max_wavefront
    from matchwood.ordering import order_measures as order_measures
    from matchwood.ordering import permute as permute
    from matchwood.ordering import pseudo_peripheral_vertex as pseudo_peripheral_vertex
    from matchwood.ordering import rabbit_order as rabbit_order
    from matchwood.ordering import rcm_ordering as rcm_ordering
    from matchwood.ordering import refine_order as refine_order
    from matchwood.ordering import reverse_cuthill_mckee as reverse_cuthill_mckee
    from matchwood.ordering import rms_wavefront as rms_wavefront
    from matchwood.ordering import shingle_order as shingle_order
    from matchwood.ranking import Ranking as Ranking
    from matchwood.ranking import pagerank as pagerank
    from matchwood.sensing import Anonymizer as Anonymizer
    from matchwood.sensing import Capture as Capture
    from matchwood.sensing import Histograms as Histograms
    from matchwood.sensing import Packets as Packets
    from matchwood.sensing import Sensing as Sensing
    from matchwood.sensing import Sliding as Sliding
    from matchwood.sensing import Statistics as Statistics
    from matchwood.sensing import TrafficMatrix as TrafficMatrix
    from matchwood.sensing import anonymize as anonymize
    from matchwood.sensing import iter_capture as iter_capture
    from matchwood.sensing import new_key as new_key
    from matchwood.sensing import read_archive as read_archive
    from matchwood.sensing import read_capture as read_capture
    from matchwood.sensing import sense as sense
    from matchwood.sensing import sliding_statistics as sliding_statistics
    from matchwood.sensing import sum_matrices as sum_matrices
    from matchwood.sensing import traffic_histograms as traffic_histograms
    from matchwood.sensing import traffic_matrix as traffic_matrix
    from matchwood.sensing import traffic_statistics as traffic_statistics
    from matchwood.sensing import write_archive as write_archive
    from matchwood.sensing import write_capture as write_capture
    from matchwood.spanning import Forest as Forest
    from matchwood.spanning import minimum_spanning_forest as minimum_spanning_forest
    from matchwood.traversal import BFS as BFS
    from matchwood.traversal import bfs as bfs
    from matchwood.traversal import forest_roots as forest_roots
    from matchwood.tridiagonal import block_tridiagonal as block_tridiagonal
else:  # hidden from type checkers, for which it would make every name exist
    __getattr__, __dir__ = _attach(__name__, _HOMES, _OLD)
