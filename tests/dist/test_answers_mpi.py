"""The communicator of MPI and the answers of its ranks, under mpiexec; see mpi_bodies.py."""

from __future__ import annotations

import pytest

from dist.mpi import RANKS, mpiexec, needs_mpi

pytestmark = needs_mpi

SCRIPT = """
import sys
import matchwood as mw
from dist.mpi import say
from dist.mpi_bodies import BODIES

with mw.dist.world() as comm:
    assert comm.kind == "mpi"
    assert comm.size == int(sys.argv[1])
    for body in BODIES:
        body(comm)
        say(body.__name__, comm.rank)
assert comm.closed
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", RANKS)
def test_answers_are_those_of_one_machine(ranks):
    copy = str(ranks % 2)  # with one, the first rank does it all
    options = {"MATCHWOOD_NUM_THREADS": "1", "MATCHWOOD_DIST_COPY": copy}
    done = mpiexec(ranks, SCRIPT, str(ranks), timeout=240, **options)
    bodies = ("components", "operations", "ranking", "trees")
    assert done.lines == [f"{body} {rank}" for body in bodies for rank in range(ranks)]
