"""Scratch arrays of one block: apart from each other, of the shape and type that was asked for."""

from __future__ import annotations

import importlib
import platform
import subprocess
import sys

import numpy as np
import pytest

from matchwood.engines.cpu import workspace
from support import environment

module = importlib.import_module("matchwood.engines.cpu.workspace")


def test_arrays_of_a_workspace_do_not_overlap():
    space = workspace(
        marks=(5, np.int64), bits=((3, 2), np.uint8), none=(0, np.float32), w=(7, float)
    )
    shapes = {name: array.shape for name, array in vars(space).items()}
    assert shapes == {"marks": (5,), "bits": (3, 2), "none": (0,), "w": (7,)}
    for k, array in enumerate(vars(space).values()):
        array[...] = k
    assert [np.unique(array).tolist() for array in vars(space).values()] == [[0], [1], [], [3]]
    assert space.marks.dtype == np.int64
    assert all(array.flags.c_contiguous and array.flags.aligned for array in vars(space).values())


def test_arrays_begin_with_a_cache_line():
    """Wherever the system's memory begins: members that have a line each share none."""
    kept = []
    for size in range(1, 200, 7):
        kept += [np.empty(size, np.uint8), workspace(first=(size, np.int8), second=(3, np.int64))]
        assert all(array.ctypes.data % 64 == 0 for array in vars(kept[-1]).values())


AGAIN = """
import resource
import numpy as np
from matchwood.engines.cpu import workspace

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    space = workspace(a=(3 << 20, np.int32), b=(1 << 20, np.int64), c=((2, 9 << 20), np.uint8))
    for array in vars(space).values():
        array.reshape(-1)[:: 4096 // array.itemsize] = 1
    del space, array
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

found = [faults() for _ in range(6)]
assert found[0] > 4 and max(found[3:]) < 4, found
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="how memory is kept is the library's business"
)
def test_a_large_workspace_is_not_had_from_the_system_anew():
    """Of 38 MB in one block each call would fault every page, or every huge page."""
    done = subprocess.run([sys.executable, "-c", AGAIN], env=environment(), timeout=100)
    assert done.returncode == 0


def test_blocks_are_as_large_as_they_may_be(monkeypatch):
    made = []
    empty = np.empty
    monkeypatch.setattr(module, "LARGEST", 4096)
    monkeypatch.setattr(module.np, "empty", lambda *given: made.append(given[0]) or empty(*given))
    space = workspace(
        a=(2000, np.uint8), b=(2000, np.uint8), c=(1, np.int64), d=(9000, np.uint8), e=(3, np.int8)
    )
    monkeypatch.undo()
    assert made == [64 + size for size in (2048 + 2048, 64, 9024, 64)]
    for k, array in enumerate(vars(space).values()):
        array[...] = k
    assert [np.unique(array).tolist() for array in vars(space).values()] == [[k] for k in range(5)]


def test_an_empty_workspace():
    assert workspace(nothing=(0, np.int32)).nothing.size == 0
