"""`make test-bounds` must be able to fail: a kernel that leaves its array is reported there."""

from __future__ import annotations

import pytest

from support import run_script

SCRIPT = """
    import numpy as np
    from matchwood.engines.cpu import atomic_add, crew, kernel, load_relaxed, store_relaxed

    @kernel
    def _read(team, x, i):
        x[0] = x[i]

    @kernel
    def _write(team, x, i):
        x[i] = 1

    @kernel
    def _unsigned(team, x, i):
        x[np.uint64(i)] = 1

    @kernel
    def _add(team, x, i):
        atomic_add(x, i, 1)

    @kernel
    def _load(team, x, i):
        x[0] = load_relaxed(x, i)

    @kernel
    def _store(team, x, i):
        store_relaxed(x, i, 1)

    room = np.zeros(64, np.int64)  # what is read and written outside of x is ours
    for threads in (1, 3):
        for step in (_read, _write, _unsigned, _add, _load, _store):
            crew(threads, work=1 << 20).run(step, room[:8], 7)
            try:
                crew(threads, work=1 << 20).run(step, room[:8], 8)
            except IndexError:
                print("seen")
            else:
                print("missed")
"""


@pytest.mark.slow
@pytest.mark.parametrize("checked", [True, False])
def test_steps_outside_an_array_are_seen_with_bounds_checked(checked, tmp_path):
    told = run_script(tmp_path, SCRIPT, NUMBA_BOUNDSCHECK="1" if checked else "0").split()
    assert told == ["seen" if checked else "missed"] * 12
