"""The communicator of MPI, under mpiexec: how it is opened; its operations: test_answers_mpi.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import matchwood as mw
from dist.mpi import SHARES, clean_environment, mpiexec, needs_mpi
from matchwood.engines.cpu.native import POSSIBLE
from matchwood.engines.ranks import opening
from matchwood.engines.ranks.placement import mpi_launchers
from support import looped, run_script

pytestmark = needs_mpi

WORLDS = """
import os
import numpy as np
import matchwood as mw
from dist import bodies
from dist.mpi import say

rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")))
try:
    mw.dist.world(transport="host" if rank == 1 else "auto")
except (ValueError, mw.RankFailed) as error:
    say("different:", error)
os.environ["MATCHWOOD_DIST_DEBUG"] = "1"
with mw.dist.world() as comm:
    assert comm.session.debug
    bodies.reductions(comm, ["int16"], (0, 5))
    bodies.gathers(comm, ["float32"], (0, 5))
    bodies.splits(comm)
    bodies.things(comm)
del os.environ["MATCHWOOD_DIST_DEBUG"]
with mw.dist.world() as first, mw.dist.world() as second:
    assert first.allreduce(np.ones(1))[0] == second.allreduce(np.ones(1))[0] == first.size
    found = mw.dist.describe(first, mode="dicts")
    assert found["kind"] == "mpi" and found["size"] == 3 == len(found["ranks"])
    assert [rank["local_rank"] for rank in found["ranks"]] == [0, 1, 2]
    assert found["ranks"][0]["threads"] == first.threads
    assert sum(found["launchers"].values()) == 3
    assert found["library"]
    assert found["cuda_aware"] in (True, False)
    mw.dist.describe(first)
for _ in range(20):
    with mw.dist.world(threads=2) as comm:
        assert comm.threads == 2
        comm.split(0).barrier()
left_open = mw.dist.world()
left_open.barrier()
"""


@pytest.mark.slow
def test_several_worlds():
    """One whose ranks want different things, one while debugging, and one that is never closed.

    One that is neither is described.
    """
    done = mpiexec(3, WORLDS, MATCHWOOD_NUM_THREADS="3")
    assert done.stderr == ""
    assert "kind       mpi, 3 ranks" in done.stdout
    assert done.stdout.count("threads 3") == 3
    assert "timeout 200 s, debugging off" in done.stdout
    assert ("CPU data   by memory that the ranks share" in done.stdout) == SHARES
    different = [line for line in done.lines if line.startswith("different:")]
    assert len(different) == 3
    for line in different:
        assert "rank 1 called world(cpu, host), but ranks 0 and 2 called world(cpu, auto)" in line


OWN_CPUS = """
import os
import numpy as np
import matchwood as mw
from matchwood.engines.cpu import crew, kernel, members

@kernel
def nothing(team, x):
    x[team.me] = 1

def where(count):
    crew(count, work=1 << 20).run(nothing, np.zeros(count))
    assert all(member.mailbox is not None for member in members._free)
    return [os.sched_getaffinity(member.native_id) for member in members._free[-count:]]

rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")))
cpus, each = sorted(os.sched_getaffinity(0)), EACH
mine = cpus[rank * each : (rank + 1) * each]
crew(each, work=1 << 20).run(nothing, np.zeros(each))
members._free.clear()
os.sched_setaffinity(0, mine)
with mw.dist.world(threads=each) as comm:
    assert where(each) == [{cpu} for cpu in mine] == where(each)
    assert where(each + 1) == [set(mine)] * (each + 1)
    assert where(each) == [{cpu} for cpu in mine]
    assert os.sched_getaffinity(0) == set(mine)
assert where(each) == [set(mine)] * each
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not POSSIBLE or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs, and Linux"
)
def test_ranks_with_cpus_of_their_own_keep_members_there():
    each = min(2, len(os.sched_getaffinity(0)) // 2)
    mpiexec(2, OWN_CPUS.replace("EACH", str(each)))


# How a program was started


def test_a_program_started_alone_has_one_rank(tmp_path):
    script = "import matchwood as mw, sys\nprint(mw.dist.world().kind, 'mpi4py' in sys.modules)"
    assert run_script(tmp_path, script) == "serial False"


@pytest.mark.slow
def test_foreign_launchers_are_seen(tmp_path):
    """Every process would be rank 0: the variables of another launcher are there, but no ranks."""
    path = tmp_path / "script.py"
    path.write_text("import matchwood as mw\nmw.dist.world()")
    environment = clean_environment(SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="2")
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "Slurm's srun started 4 processes, but for mpi4py, which uses" in done.stderr
    assert "each is rank 0 of 1. Start the program with the mpiexec of that lib" in done.stderr


@looped(
    ("library", "launcher", "foreign"),
    [
        ("MPICH Version: 5.0.2", "OMPI_COMM_WORLD_SIZE", True),
        ("Open MPI v5.0.11, package", "OMPI_COMM_WORLD_SIZE", False),
        ("MPICH Version: 5.0.2", "PMI_SIZE", False),
    ],
)
def test_foreign_launchers_are_seen_before_mpi_starts(library, launcher, foreign):
    """A library may end the process when it starts under a launcher it does not know."""

    class MPI:
        @staticmethod
        def Get_library_version():
            return library

    launchers = mpi_launchers({launcher: "4"})
    if not foreign:
        return opening._refuse_strange(MPI, launchers)
    with pytest.raises(mw.EngineUnavailable, match=r"started 4 processes, but .* MPICH Version"):
        opening._refuse_strange(MPI, launchers)


def test_a_missing_mpi4py_is_named(tmp_path):
    script = """
    import sys, importlib.util
    sys.modules["mpi4py"] = None
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name: None if name == "mpi4py" else find(name)
    import matchwood as mw
    try:
        mw.dist.world()
    except mw.EngineUnavailable as error:
        print(error)
    """
    said = run_script(tmp_path, script, PMI_SIZE="4")
    assert "mpiexec of MPICH or Intel MPI asks for MPI, and mpi4py is not installed" in said
    assert "pip install matchwood[mpi]" in said
