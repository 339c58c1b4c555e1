"""A backend for NetworkX: its functions, computed by matchwood.

    nx.connected_components(G, backend="matchwood")
    nx.config.backend_priority.algos = ["matchwood"]      # for a whole program

Read info.py first (which functions), then convert.py and gate/networkx (how a graph is converted),
graph.py (to what), interface.py (which calls are taken), and the functions by family in
algorithms/.

    convert_from_nx    convert a graph once, for many calls
    convert_to_nx      and back
    Graph              what it is converted to
    register           make NetworkX know the backend where it is not installed
    CALLS              how often NetworkX has called each function of the backend
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "convert_from_nx": "matchwood.networkx_backend.convert",
    "convert_to_nx": "matchwood.networkx_backend.convert",
    "Graph": "matchwood.networkx_backend.graph",
    "CALLS": "matchwood.networkx_backend.names",
    "register": "matchwood.networkx_backend.names",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from matchwood.networkx_backend.convert import convert_from_nx as convert_from_nx
    from matchwood.networkx_backend.convert import convert_to_nx as convert_to_nx
    from matchwood.networkx_backend.graph import Graph as Graph
    from matchwood.networkx_backend.names import CALLS as CALLS
    from matchwood.networkx_backend.names import register as register
else:
    __getattr__, __dir__ = _attach(__name__, _HOMES)
