"""Telling NetworkX of the backend where the package is on the path but not installed."""

from __future__ import annotations

import importlib.metadata


def register() -> None:
    """Make ``backend="matchwood"`` work in this process.

    An installed matchwood is known to NetworkX already, and nothing happens.  A folder of
    sources on the path has no entry points, by which NetworkX finds its backends.

    Examples
    --------
    >>> import networkx as nx
    >>> from matchwood import networkx_backend
    >>> networkx_backend.register()
    >>> nx.number_connected_components(nx.path_graph(5), backend="matchwood")
    1
    """
    import networkx as nx
    from networkx.utils import backends

    from matchwood.networkx_backend.info import DEFAULTS, get_info

    if "matchwood" in backends.backends:
        return
    backends.backends["matchwood"] = importlib.metadata.EntryPoint(
        "matchwood", "matchwood.networkx_backend.interface", "networkx.backends"
    )
    backends.backend_info["matchwood"] = get_info()
    others = dict(nx.config.backends.items())
    nx.config.backends = nx.utils.Config(matchwood=nx.utils.Config(**DEFAULTS), **others)
    dispatchable = backends._dispatchable
    dispatchable.__call__ = dispatchable._call_if_any_backends_installed
