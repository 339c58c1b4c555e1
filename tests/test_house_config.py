"""What `show_config` shows, the list of kernels, and that `warmup` compiles it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import kernel_calls
import matchwood
from matchwood import engines
from matchwood.engines.cpu import code, compiled, default_threads
from matchwood.machine import kernels
from support import SOURCES, run_script


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


# The list of kernels


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_kernel_that_public_functions_meet_is_listed():
    for _, run in kernel_calls.steps():
        run()
    assert code.met <= kernels.listed()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_small_graphs_meet_comes_compiled(tmp_path):
    """In a process of its own: what was met before would not be met again."""
    script = """
    import kernel_calls
    from matchwood.engines.cpu import code
    from matchwood.machine import kernels
    kernel_calls.small_graphs_given_with_wide_indices()
    print(len(code.met) > 200, sorted(code.met - set(kernels.packed())))
    """
    said = run_script(
        tmp_path, script, PYTHONPATH=os.pathsep.join(map(str, (SOURCES, Path(__file__).parent)))
    )
    assert said == "True []"


def test_the_list_names_kernels_that_exist():
    for text in kernels.listed():
        name, *kinds = json.loads(text)
        kernel = compiled.found(name)
        assert isinstance(kernel, compiled.Kernel), name
        assert len(kinds) == kernel.py_func.__code__.co_argcount, text


def test_warmup_of_a_part():
    told = []
    summary = matchwood.warmup("mailboxes:wait", report=told.append)
    assert told == ["matchwood.engines.cpu.mailboxes:wait"]
    assert summary["compiled"] in (0, 1)
    with pytest.raises(ValueError, match="no kernel has 'nothing' in its signature"):
        matchwood.warmup("nothing")


@pytest.mark.slow
def test_warmup_compiles_what_a_call_needs(tmp_path):
    """And an exception in `report` ends all compilers."""
    cache = {"MATCHWOOD_CACHE_DIR": str(tmp_path / "cache"), "MATCHWOOD_KERNELS": "off"}
    assert int(run_script(tmp_path, WARM, **cache)) > 5
    assert int(run_script(tmp_path, WARM, **cache)) == 0
    assert run_script(tmp_path, USE, **cache) == "False"


WARM = """
    import matchwood
    done = matchwood.warmup("mailboxes")["compiled"] + matchwood.warmup("inspect")["compiled"]
    def stop(name):
        raise KeyError(name)
    try:
        matchwood.warmup(report=stop)
    except KeyError:
        print(done)
"""

USE = """
    import sys
    import matchwood
    matchwood.graph(matchwood.generators.path(30))
    print("numba" in sys.modules)
"""
