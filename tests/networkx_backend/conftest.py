"""The backend as NetworkX sees it, also where matchwood is on the path but not installed."""

from __future__ import annotations

import importlib.metadata
import warnings

import networkx as nx
import pytest
from networkx.utils import backends


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    """Make NetworkX know the backend, with default settings and nothing counted."""
    from matchwood.networkx_backend.info import DEFAULTS, get_info
    from matchwood.networkx_backend.names import CALLS

    if "matchwood" not in backends.backends:
        entry = importlib.metadata.EntryPoint(
            "matchwood", "matchwood.networkx_backend.interface", "networkx.backends"
        )
        monkeypatch.setitem(backends.backends, "matchwood", entry)
        monkeypatch.setitem(backends.backend_info, "matchwood", get_info())
        settings = nx.utils.Config(matchwood=nx.utils.Config(**DEFAULTS), **nx.config.backends)
        monkeypatch.setattr(nx.config, "backends", settings)
        monkeypatch.setattr(
            backends._dispatchable,
            "__call__",
            backends._dispatchable._call_if_any_backends_installed,
        )
    CALLS.clear()
    with nx.config.backends.matchwood(**DEFAULTS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Note: conversions to backend graphs")
        yield
