"""The backend as NetworkX sees it, also where matchwood is on the path but not installed."""

from __future__ import annotations

import warnings

import networkx as nx
import pytest

from matchwood.networkx_backend import CALLS, register
from matchwood.networkx_backend.info import DEFAULTS


@pytest.fixture(autouse=True)
def backend():
    """Default settings, nothing counted yet."""
    register()
    CALLS.clear()
    with nx.config.backends.matchwood(**DEFAULTS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Note: conversions to backend graphs")
        yield
