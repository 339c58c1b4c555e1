"""`Devices`: what it refuses, and which functions take it."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import matchwood
from graphs import grid
from matchwood import Devices, EngineUnavailable, engines
from simulated_devices import simulated
from support import looped

MiB = 1 << 20


def test_a_value():
    one = Devices((0, 1), memory="2 GiB", batches=3, lists=4, transport="peer", stats=True)
    assert one == Devices([0, 1], memory=2 << 30, batches=3, lists=4, transport="peer", stats=True)
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert one.size == 2
    assert Devices().devices == (0,)
    assert Devices(3).devices == (3,)
    assert Devices(np.array([1, 1])).devices == (1, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.batches = 4


@looped(
    ("text", "size"),
    [
        ("8 GiB", 8 << 30), ("2GiB", 2 << 30), ("1.5 MiB", 3 << 19), ("500 MB", 5 * 10**8),
        ("1000", 1000), (" 7 kb ", 7000), (".5KiB", 512), (12, 12), (np.int64(5), 5), (None, None),
    ],
)  # fmt: skip
def test_memory_is_read(text, size):
    assert Devices(memory=text).memory == size


@looped(
    ("options", "error", "match"),
    [
        ({"devices": ()}, ValueError, "devices must name at least one device, got none"),
        ({"devices": (0, -1)}, ValueError, "devices must be at least 0, got -1"),
        ({"devices": (0.5,)}, TypeError, "devices must be an integer, got 0.5"),
        ({"devices": "0,1"}, TypeError, "devices must be the number of a device or several"),
        ({"devices": None}, TypeError, "devices must be the number of a device or several"),
        ({"devices": (True,)}, TypeError, "devices must be an integer"),
        ({"memory": -1}, ValueError, "memory must be at least 1, got -1"),
        ({"memory": 0}, ValueError, "memory must be at least 1, got 0"),
        ({"memory": "-3 GiB"}, ValueError, "memory must be bytes or text such as '8 GiB'"),
        ({"memory": "much"}, ValueError, "got 'much'"),
        ({"memory": "8 GiBs"}, ValueError, "got '8 GiBs'"),
        ({"memory": ""}, ValueError, "got ''"),
        ({"memory": "0.1"}, ValueError, "memory must be 1 byte to .* bytes, got '0.1'"),
        ({"memory": 1.5}, TypeError, "memory must be an integer, got 1.5"),
        ({"batches": 0}, ValueError, "batches must be at least 1, got 0"),
        ({"batches": "3"}, TypeError, "batches must be an integer, got '3'"),
        ({"lists": -1}, ValueError, "lists must be at least 0, got -1"),
        ({"lists": 33}, ValueError, "lists must be at most 32, got 33"),
        ({"lists": "many"}, ValueError, "lists must be 'auto' or an integer, got 'many'"),
        ({"lists": True}, TypeError, "lists must be an integer"),
        ({"transport": "pigeon"}, ValueError, "transport must be one of 'auto', 'nccl', 'peer'"),
        ({"devices": (0, 0), "transport": "nccl"}, ValueError, "needs devices that differ"),
        ({"devices": (0, 1), "transport": "device"}, ValueError, "needs one device"),
        ({"stats": 1}, TypeError, "stats must be True or False, got 1"),
    ],
)
def test_what_is_refused(options, error, match):
    with pytest.raises(error, match=match) as told:
        Devices(**options)
    assert str(told.value).startswith("Devices: ")


TAKE = {"weighted_matching", "degree_factor", "connected_components"}
SECOND = {"bfs": 0, "degree_factor": 2, "factor": 2, "solve": np.ones(12), "permute": np.arange(12)}


def functions_of_a_graph() -> list[str]:
    found = []
    for name in matchwood.__all__:
        value = getattr(matchwood, name)
        if not inspect.isfunction(value):
            continue
        parameters = list(inspect.signature(value).parameters)
        if "engine" in parameters and parameters[0] == "A":
            found.append(name)
    return found


@looped("name", sorted(set(functions_of_a_graph()) - TAKE))
def test_functions_without_such_an_engine_say_so(name):
    A = matchwood.generators.grid((3, 4))
    given = [A]
    parameters = list(inspect.signature(getattr(matchwood, name)).parameters.values())
    second = parameters[1]
    if second.default is inspect.Parameter.empty and second.kind is not second.KEYWORD_ONLY:
        given.append(SECOND.get(name, np.arange(12)))
    with simulated(MiB), pytest.raises(EngineUnavailable, match="Devices"):
        getattr(matchwood, name)(*given, engine=Devices())


def test_there_are_such_functions():
    assert len(functions_of_a_graph()) > 15
    assert set(functions_of_a_graph()) >= TAKE


def test_methods_without_such_an_engine_say_so():
    A = grid(5, 5)
    for method in ("suitor", "greedy", "augmented", "exact", "streaming", "random_weighted"):
        with simulated(MiB), pytest.raises(EngineUnavailable, match="no engine for Devices"):
            matchwood.weighted_matching(A, method=method, engine=Devices())


def test_a_device_that_is_not_there():
    with simulated(MiB, count=2), pytest.raises(EngineUnavailable) as told:
        matchwood.weighted_matching(grid(3, 3), engine=Devices((0, 5)))
    assert str(told.value) == "weighted_matching: there is no device 5; this machine has 2"


def test_no_gpu():
    if engines.gpu_available():
        pytest.skip("there is a GPU")
    with pytest.raises(EngineUnavailable, match="GPU"):
        matchwood.weighted_matching(grid(3, 3), engine=Devices())


def test_wrong_engines_are_refused_as_before():
    with pytest.raises(ValueError, match="engine must be None or one of 'reference'"):
        matchwood.weighted_matching(grid(3, 3), engine="devices")
