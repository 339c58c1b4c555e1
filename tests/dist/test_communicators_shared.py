"""Arrays through memory that processes of a host share: here threads map it."""

from __future__ import annotations

import numpy as np
import pytest

from dist import bodies
from dist.mpi import mpiexec, needs_mpi
from matchwood.dist import run
from matchwood.dist.networks import shared
from support import looped

SMALL = 2 * 5 * 16  # bytes of a window: five sections with one number each, on two sides


@pytest.fixture(autouse=True)
def _leaves_nothing():
    yield
    if shared.FOLDER.exists():
        assert not list(shared.FOLDER.glob("matchwood-*"))


@looped("nbytes", [1 << 20, 4096, SMALL])  # one round, some, and many
def test_operations(nbytes):
    def work(comm):
        made = shared.Near(comm, nbytes, large=1)
        if nbytes > SMALL:
            bodies.everything(made, few=True)
        else:
            bodies.reductions(made, [np.int8, np.float64, np.complex128], (0, 1, 7, 40))
            bodies.gathers(made, [np.bool_, np.longdouble], (0, 1, 5))
            bodies.strides(made)
        assert comm.size == 1 or made._windows is not None
        made.close()
        assert comm.closed

    for ranks in (1, 2, 3, 5):
        run(work, ranks)


def test_without_room_the_library_carries_all(monkeypatch):
    def work(comm):
        made = shared.Near(comm, large=1)
        found = made.allgather(np.arange(1000))
        assert np.array_equal(found, np.tile(np.arange(1000), comm.size))
        assert made._windows is None
        bodies.strides(made)

    make = shared._make

    def full(path, nbytes):  # the second rank to come has no room
        if next(turns) == 1:
            raise OSError(28, "No space left on device")
        make(path, nbytes)

    turns = iter(range(100))
    monkeypatch.setattr(shared, "_make", full)
    run(work, 3)


def test_small_arrays_go_by_the_library():
    def work(comm):
        made = shared.Near(comm)
        made.allreduce(np.ones(100))
        assert not made._tried
        made.allreduce(np.ones(100_000))
        assert made._tried
        return made.allreduce(np.array([made.rank]))[0]

    assert run(work, 4) == [6] * 4


LARGE = """
import numpy as np
import matchwood as mw
from matchwood.dist.networks.shared import Near

with mw.dist.world() as comm:
    assert isinstance(comm, Near) and comm.kind == "mpi"
    values = np.arange(300_001) * (comm.rank + 1.0)
    whole = comm.allreduce(values)
    assert np.array_equal(whole, np.arange(300_001) * 3.0)
    half = comm.split(0, -comm.rank)
    assert np.array_equal(half.allgather(values)[:300_001], np.arange(300_001) * 2.0)
    assert comm._windows is not None and half._windows is not None
"""


@needs_mpi
def test_processes():
    mpiexec(2, LARGE)
