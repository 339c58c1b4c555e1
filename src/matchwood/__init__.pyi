# Every public name, one line each.  Made by `make lists` from registry.py.

from matchwood.traversal.breadth_first import bfs as bfs  # breadth-first levels and parents from one or many sources
from matchwood.traversal.breadth_first import BFS as BFS  # what `bfs` returns
from matchwood.traversal.pointer_jumping import forest_roots as forest_roots  # the root of every vertex, by pointer jumping
from matchwood.components.connected import connected_components as connected_components  # which vertices are joined by paths
from matchwood.components.connected import Components as Components  # what both kinds of components return
from matchwood.components.strong import strongly_connected_components as strongly_connected_components  # which reach each other
from matchwood.components.strong.condensation import condensation as condensation  # a vertex for each of those: no cycles are left
from matchwood.components.strong.condensation import Condensation as Condensation  # what `condensation` returns
from matchwood.communities.louvain_leiden import louvain as louvain  # groups of high modularity: vertices move, groups contract
from matchwood.communities.louvain_leiden import leiden as leiden  # as louvain, with parts that are well connected
from matchwood.communities.quality import modularity as modularity  # how good communities are
from matchwood.communities.propagation import label_propagation as label_propagation  # each takes the heaviest label around it
from matchwood.communities import Communities as Communities  # what `louvain`, `leiden` and `label_propagation` return
from matchwood.partitioning.kway import partition as partition  # k blocks of bounded weight, few edges between them
from matchwood.partitioning.kway import Partition as Partition  # what both functions of this kind return
from matchwood.partitioning.kway import refine_partition as refine_partition  # blocks that exist already made better
from matchwood.independent import maximal_independent_set as maximal_independent_set  # no two neighbours, none can be added
from matchwood.spanning.forest import minimum_spanning_forest as minimum_spanning_forest  # the lightest edges that join everything
from matchwood.spanning.forest import Forest as Forest  # what `minimum_spanning_forest` returns
from matchwood.matching import weighted_matching as weighted_matching  # a heavy matching, and how near to the best
from matchwood.matching import Matching as Matching  # what all functions named ..._matching return
from matchwood.matching import maximal_matching as maximal_matching  # one to which no edge can be added
from matchwood.matching.cardinality import maximum_matching as maximum_matching  # as many edges as there can be
from matchwood.matching import streaming_matching as streaming_matching  # one from a stream of edges
from matchwood.matching.bound import matching_bound as matching_bound  # how heavy any matching can be at most
from matchwood.matching.bound import Bound as Bound  # what `matching_bound` returns
from matchwood.matching.coarsening import coarsen as coarsen  # the graph in which matched vertices are one
from matchwood.matching.coarsening import Coarsening as Coarsening  # what `coarsen` returns
from matchwood.matching.coarsening import coarsening_hierarchy as coarsening_hierarchy  # ever coarser graphs
from matchwood.matching.coarsening import Hierarchy as Hierarchy  # what `coarsening_hierarchy` returns
from matchwood.factors import degree_factor as degree_factor  # up to n strong edges at each vertex
from matchwood.factors import factor as factor  # its old name
from matchwood.factors import Factor as Factor  # what `degree_factor` returns
from matchwood.factors import coverage_of_order as coverage_of_order  # weight next to the diagonal
from matchwood.forests import linear_forest as linear_forest  # disjoint paths of strong edges, and an order along them
from matchwood.forests import tridiagonal_of as tridiagonal_of  # the values of a matrix along the paths
from matchwood.forests import LinearForest as LinearForest  # what `linear_forest` returns
from matchwood.ordering.rcm import reverse_cuthill_mckee as reverse_cuthill_mckee  # an order with entries near the diagonal
from matchwood.ordering.rcm import cuthill_mckee as cuthill_mckee  # the same, not reversed
from matchwood.ordering.rcm import pseudo_peripheral_vertex as pseudo_peripheral_vertex  # a vertex at the rim, to start from
from matchwood.ordering.rcm import rcm_ordering as rcm_ordering  # both, with measures, counters and times
from matchwood.ordering.rcm import Ordering as Ordering  # what `rcm_ordering` returns
from matchwood.ordering.rcm.check import is_rcm_order as is_rcm_order  # is this the order of Cuthill and McKee?
from matchwood.ordering.permutation import permute as permute  # a matrix in another order
from matchwood.ordering.measure import order_measures as order_measures  # bandwidth, profile and wavefronts at once
from matchwood.ordering.measure import Measures as Measures  # what `order_measures` returns
from matchwood.ordering.measure import bandwidth as bandwidth  # largest distance of an entry from the diagonal
from matchwood.ordering.measure import matrix_profile as matrix_profile  # sum of the distances of the first entries
from matchwood.ordering.measure import max_wavefront as max_wavefront  # most rows active at once
from matchwood.ordering.measure import rms_wavefront as rms_wavefront  # root mean square of the active rows
from matchwood.ordering.rabbit import rabbit_order as rabbit_order  # communities within communities lie together
from matchwood.ordering.shingle import shingle_order as shingle_order  # vertices with common neighbours lie together
from matchwood.ordering.llp import layered_label_propagation_order as layered_label_propagation_order  # labels at many resolutions
from matchwood.ordering.degree import degree_order as degree_order  # the largest degree first
from matchwood.ordering.degree import hub_order as hub_order  # vertices of large degree first
from matchwood.ordering.locality import locality_ordering as locality_ordering  # any of these by its name, with gaps and times
from matchwood.ordering.locality import LocalityOrdering as LocalityOrdering  # what `locality_ordering` returns
from matchwood.ordering.refine import refine_order as refine_order  # make an order better by swaps
from matchwood.ordering.refine import Refinement as Refinement  # what `refine_order` returns
from matchwood.ordering.gap import gaps as gaps  # how far apart neighbours lie, in four numbers
from matchwood.ordering.gap import Gaps as Gaps  # what `gaps` returns
from matchwood.ordering.gap import linear_arrangement as linear_arrangement  # sum of the lengths of edges
from matchwood.ordering.gap import log_arrangement as log_arrangement  # sum of their logarithms
from matchwood.ordering.gap import linear_gap as linear_gap  # sum of the jumps from neighbour to neighbour
from matchwood.ordering.gap import log_gap as log_gap  # sum of their logarithms
from matchwood.ordering.dissection import nested_dissection as nested_dissection  # separators are eliminated last
from matchwood.ordering.dissection import Dissection as Dissection  # what `nested_dissection` returns
from matchwood.ordering.dissection import elimination_order as elimination_order  # this or minimum degree, whichever takes fewer operations
from matchwood.ordering.dissection import EliminationOrder as EliminationOrder  # what `elimination_order` returns
from matchwood.ordering.minimum_degree import minimum_degree as minimum_degree  # the fewest neighbours first
from matchwood.ordering.elimination import fill as fill  # entries of L and operations of an order
from matchwood.ordering.elimination import Fill as Fill  # what `fill` returns
from matchwood.ordering.elimination import elimination_tree as elimination_tree  # which column is needed by which
from matchwood.partitioning.separator import vertex_separator as vertex_separator  # few vertices between two halves
from matchwood.partitioning.cover import minimum_vertex_cover as minimum_vertex_cover  # fewest vertices that touch every edge
from matchwood.partitioning.cover import Cover as Cover  # what `minimum_vertex_cover` returns
from matchwood.ranking import pagerank as pagerank  # where a random surfer spends the time
from matchwood.ranking import Ranking as Ranking  # what `pagerank` returns
from matchwood.applications.sensing.stream import sense as sense  # a capture to windows, a sum and statistics
from matchwood.applications.sensing.stream import Sensing as Sensing  # what `sense` returns
from matchwood.applications.sensing.traffic import traffic_matrix as traffic_matrix  # packets counted by source and destination
from matchwood.applications.sensing.traffic import sum_matrices as sum_matrices  # such matrices added up
from matchwood.applications.sensing.traffic import TrafficMatrix as TrafficMatrix  # what both return
from matchwood.applications.sensing.statistics import traffic_statistics as traffic_statistics  # the nine quantities of traffic
from matchwood.applications.sensing.statistics import Statistics as Statistics  # what `traffic_statistics` returns
from matchwood.applications.sensing.statistics import traffic_histograms as traffic_histograms  # how many have each value, and a fit
from matchwood.applications.sensing.statistics import Histograms as Histograms  # what `traffic_histograms` returns
from matchwood.applications.sensing.sliding import sliding_statistics as sliding_statistics  # the nine quantities after every step
from matchwood.applications.sensing.sliding import Sliding as Sliding  # what `sliding_statistics` returns
from matchwood.applications.sensing.anonymity import anonymize as anonymize  # addresses that stand for others
from matchwood.applications.sensing.anonymity import Anonymizer as Anonymizer  # the same for many blocks, with one key
from matchwood.applications.sensing.anonymity import new_key as new_key  # a key in a private file
from matchwood.applications.sensing.capture import read_capture as read_capture  # all IPv4 packets of a capture
from matchwood.applications.sensing.capture import iter_capture as iter_capture  # the same, block after block
from matchwood.applications.sensing.capture import write_capture as write_capture  # packets as a capture
from matchwood.applications.sensing.capture import Packets as Packets  # what they read and write
from matchwood.applications.sensing.capture import Capture as Capture  # what `iter_capture` returns
from matchwood.applications.sensing.archive import read_archive as read_archive  # matrices that GraphBLAS wrote
from matchwood.applications.sensing.archive import write_archive as write_archive  # matrices that GraphBLAS reads
from matchwood.join import fuzzy_join as fuzzy_join  # pairs of records whose elements can be matched well
from matchwood.join import iter_fuzzy_join as iter_fuzzy_join  # the same in blocks, for answers larger than memory
from matchwood.join import Pairs as Pairs  # what both return
from matchwood.join import collection as collection  # records read and tokenised once, for many joins
from matchwood.join import Collection as Collection  # what `collection` returns
from matchwood.join import explain as explain  # which elements of two records match, and what the bounds say
from matchwood.join import Explanation as Explanation  # what `explain` returns
from matchwood import tridiagonal as tridiagonal  # solve tridiagonal systems, with pivoting
from matchwood.tridiagonal import block_tridiagonal as block_tridiagonal  # ... of 2x2 blocks
from matchwood import preconditioners as preconditioners  # Jacobi, tridiagonal, along linear forests, multilevel
from matchwood.krylov import solve as solve  # solve a sparse system with one of them
from matchwood.krylov import solve_laplacian as solve_laplacian  # ... of the Laplacian of a graph
from matchwood.krylov import Solution as Solution  # what both return
from matchwood.gate.graph import graph as graph  # check and prepare a matrix once, for many calls
from matchwood.gate.graph import Graph as Graph  # what `graph` returns, and every function takes
from matchwood.gate.distributed import distribute as distribute  # place a graph on the ranks of a communicator
from matchwood.gate.distributed import DistributedGraph as DistributedGraph  # what `distribute` returns: a block a rank
from matchwood.engines.ranks.vectors import DistributedVector as DistributedVector  # values of vertices, on their ranks
from matchwood.engines.devices import Devices as Devices  # GPUs, for graphs larger than one of them
from matchwood.engines.cpu.crew import on_progress as on_progress  # a callback while kernels run
from matchwood.machine.config import show_config as show_config  # threads, caches, versions, GPU
from matchwood.machine.kernels import warmup as warmup  # compile every kernel now
from matchwood.errors import CheckFailed as CheckFailed  # it is not right; says what and where
from matchwood.errors import EngineUnavailable as EngineUnavailable  # no GPU, no CuPy, no MPI here
from matchwood.errors import RankFailed as RankFailed  # another process of the program failed
from matchwood.errors import OutOfMemory as OutOfMemory  # the memory a call needs is not free
from matchwood.errors import FileFormatError as FileFormatError  # a file does not follow its format
from matchwood import generators as generators  # graphs made from a seed
from matchwood import io as io  # read and write files
from matchwood import dist as dist  # communicators: MPI, NCCL, torch.distributed, threads
from matchwood import primitives as primitives  # scan, sort, compact, frontier, union-find, ...
from matchwood import check as check  # is this answer right?  One function a problem
from matchwood import traversal as traversal
from matchwood import components as components
from matchwood import communities as communities
from matchwood import partitioning as partitioning
from matchwood import independent as independent
from matchwood import spanning as spanning
from matchwood import matching as matching
from matchwood import factors as factors
from matchwood import forests as forests
from matchwood import ordering as ordering
from matchwood import ranking as ranking
from matchwood import sensing as sensing
from matchwood import join as join

__all__: list[str]
__version__: str
