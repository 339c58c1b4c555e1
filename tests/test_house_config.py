"""What `show_config` shows, and that `warmup` leaves nothing to compile."""

from __future__ import annotations

import pytest

import matchwood
from matchwood import engines
from matchwood.engines.cpu import default_threads
from matchwood.machine import warm
from support import run_script


def test_config_has_the_facts():
    config = matchwood.show_config(mode="dicts")
    assert config["matchwood"] == matchwood.__version__
    assert config["cpu"]["threads"] == default_threads()
    assert config["gpu"]["available"] == engines.gpu_available()
    assert bool(config["gpu"]["reason"]) != bool(config["gpu"]["devices"])
    assert config["versions"]["numpy"]
    assert config["versions"]["numba"]


def test_config_is_printed(capsys):
    assert matchwood.show_config() is None
    printed = capsys.readouterr().out
    assert printed.startswith(f"matchwood  {matchwood.__version__}\n")
    for word in ("threads on", "cache", "gpu", "numba"):
        assert word in printed


def test_config_wants_a_mode_that_it_knows():
    with pytest.raises(ValueError, match="mode must be one of 'stdout', 'dicts', got 'html'"):
        matchwood.show_config(mode="html")


def test_warmup_knows_every_problem():
    """Each function of the index that takes a graph is warmed up."""
    steps = " ".join(name for name, _ in warm._steps())
    for word in ("bfs", "components, afforest", "components, fastsv", "components, bfs", "graph",
                 "row_reduce", "sort", "generators", "io"):  # fmt: skip
        assert word in steps


def test_warmup_of_a_part():
    told = []
    summary = matchwood.warmup("sort, uint32, int32", report=told.append)
    assert told == ["sort, uint32, int32"]
    assert summary["compiled"] >= 0
    with pytest.raises(ValueError, match="no step has 'nothing' in its name"):
        matchwood.warmup("nothing")


WARM = """
    import matchwood
    told = []
    summary = matchwood.warmup(report=told.append)
    assert len(told) > 20
    print(summary["compiled"])
"""

USE = """
    import numpy as np
    import scipy.sparse as sp
    import matchwood
    from matchwood.engines.cpu import cache_folder

    def files():
        return {path.name for path in cache_folder().iterdir()}

    before = files()
    assert before
    for threads in (1, 2):
        for index in (np.int32, np.int64):
            for value in (np.float32, np.float64):
                A = matchwood.generators.rmat(12, 8, dtype=value, threads=threads)
                B = matchwood.generators.rmat(12, 8, directed=True, dtype=value, threads=threads)
                for X in (A, B, matchwood.generators.grid((60, 60), dtype=value)):
                    G = matchwood.graph(X, index_dtype=index)
                    G.undirected_weights()
                    for method in ("auto", "afforest", "fastsv", "bfs"):
                        matchwood.connected_components(G, method=method, threads=threads)
                        matchwood.connected_components(X, method=method, threads=threads)
                    for directed in (True, False):
                        matchwood.bfs(G, [0, 5], directed=directed, threads=threads)
                        matchwood.bfs(X, 0, directed=directed, threads=threads)
    print(*sorted(files() - before))
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_after_warmup_nothing_is_left_to_compile(tmp_path):
    cache = {"MATCHWOOD_CACHE_DIR": str(tmp_path / "cache")}
    assert int(run_script(tmp_path, WARM, **cache)) > 50
    assert int(run_script(tmp_path, WARM, **cache)) == 0
    assert run_script(tmp_path, USE, **cache) == ""
