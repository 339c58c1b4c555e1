"""The object that NetworkX loads: conversions, rules, and one function for each name.

The functions take our `Graph` and otherwise the arguments of NetworkX's; its documentation
describes them, and info.py adds what differs.
"""

from __future__ import annotations

from matchwood.networkx_backend.algorithms.communities import (
    asyn_lpa_communities,
    fast_label_propagation_communities,
    label_propagation_communities,
    leiden_communities,
    leiden_partitions,
    louvain_communities,
    louvain_partitions,
    modularity,
)
from matchwood.networkx_backend.algorithms.components import (
    condensation,
    connected_components,
    is_connected,
    is_strongly_connected,
    is_weakly_connected,
    kosaraju_strongly_connected_components,
    node_connected_component,
    number_connected_components,
    number_strongly_connected_components,
    number_weakly_connected_components,
    strongly_connected_components,
    weakly_connected_components,
)
from matchwood.networkx_backend.algorithms.ranking import pagerank
from matchwood.networkx_backend.algorithms.sets import (
    hopcroft_karp_matching,
    max_weight_matching,
    maximal_independent_set,
    maximal_matching,
)
from matchwood.networkx_backend.algorithms.spanning import (
    maximum_spanning_edges,
    maximum_spanning_tree,
    minimum_spanning_edges,
    minimum_spanning_tree,
)
from matchwood.networkx_backend.algorithms.traversal import (
    ancestors,
    bfs_edges,
    bfs_layers,
    bfs_predecessors,
    bfs_successors,
    bfs_tree,
    descendants,
    descendants_at_distance,
    generic_bfs_edges,
    has_path,
    single_source_shortest_path,
    single_source_shortest_path_length,
    single_target_shortest_path_length,
)
from matchwood.networkx_backend.convert import convert_from_nx, convert_to_nx
from matchwood.networkx_backend.rules import can_run, should_run
from matchwood.networkx_backend.testing import on_start_tests

__all__ = [
    "ancestors",
    "descendants",
    "has_path",
    "kosaraju_strongly_connected_components",
    "single_source_shortest_path",
    "asyn_lpa_communities",
    "fast_label_propagation_communities",
    "label_propagation_communities",
    "leiden_communities",
    "leiden_partitions",
    "louvain_communities",
    "louvain_partitions",
    "modularity",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "can_run",
    "condensation",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "descendants_at_distance",
    "generic_bfs_edges",
    "hopcroft_karp_matching",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "max_weight_matching",
    "maximal_independent_set",
    "maximal_matching",
    "maximum_spanning_edges",
    "maximum_spanning_tree",
    "minimum_spanning_edges",
    "minimum_spanning_tree",
    "node_connected_component",
    "number_connected_components",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "on_start_tests",
    "pagerank",
    "should_run",
    "single_source_shortest_path_length",
    "single_target_shortest_path_length",
    "strongly_connected_components",
    "weakly_connected_components",
]
