"""Scratch arrays of one block: apart from each other, of the shape and type that was asked for."""

from __future__ import annotations

import numpy as np

from matchwood.teams import workspace


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


def test_an_empty_workspace():
    assert workspace(nothing=(0, np.int32)).nothing.size == 0
