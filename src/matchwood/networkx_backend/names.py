"""The functions that NetworkX may call, how often it has, and the registration of the backend."""

from __future__ import annotations

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

CALLS: Counter[str] = Counter()
"""Calls that reached this backend, by name.  NetworkX answers itself what it is refused, and tells
nobody but its log; this shows which answers were ours."""


DISPATCHED: dict[str, Callable[..., Any]] = {}
"""The functions by name, as NetworkX gets them."""


def dispatched(function: F) -> F:
    """List a function that NetworkX dispatches to, and count its calls."""

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        CALLS[function.__name__] += 1
        return function(*args, **kwargs)

    DISPATCHED[function.__name__] = counted
    return counted  # type: ignore[return-value]


# Where the package is on the path but not installed, it has to be registered with NetworkX.


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
