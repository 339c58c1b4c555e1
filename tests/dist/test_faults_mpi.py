"""A rank that fails under mpiexec: the others raise within a second, or the job ends."""

from __future__ import annotations

import json

import pytest

from dist.mpi import mpiexec, needs_mpi

pytestmark = needs_mpi


INJECTED = """
import json, sys, time
import numpy as np
import matchwood as mw
from dist.mpi import by_messages, say
from dist.test_faults_algorithms import fail_at_random_collectives
from dist.walks import outcome

def opened():
    # ranks that share memory, and in every second run ranks that do not
    comm = mw.dist.world()
    return comm if seed % 2 else by_messages(comm)

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    fails = {}
    how, when = outcome(opened, seed, fails)   # monotonic clocks agree on one host
    say(json.dumps([seed, how, when, fails.get("at")]))
fail_at_random_collectives(int(sys.argv[2]))
with mw.dist.world() as comm:                # after all that, a new one works
    assert comm.allreduce(np.ones(1))[0] == comm.size
"""


def inject(ranks, first, last):
    done = mpiexec(ranks, INJECTED, str(first), str(last))
    found = [json.loads(line) for line in done.lines]
    for seed in range(first, last):
        walks = [entry for entry in found if entry[0] == seed]
        said = [how for _, how, _, _ in walks]
        assert len(walks) == ranks, (seed, said)
        failed = max(at for *_, at in walks if at is not None)
        # a loaded machine may take its time; without the notices nobody ends within 200 s
        assert max(when for *_, when, _ in walks) - failed < 30, (seed, said)
        assert "late" not in said, (seed, said)
        assert sum(how in ("RankFailed", "ValueError") for how in said) >= ranks - 1, (seed, said)


@pytest.mark.slow
def test_injected_failures():
    """In walks of all collectives, and at those of the distributed algorithms."""
    inject(4, 0, 12)


@pytest.mark.slow
def test_fifty_injected_failures():
    inject(3, 100, 125)
    inject(5, 200, 225)


FAULTS = """
import os, signal, sys, time
import numpy as np
import matchwood as mw
from dist.mpi import say

def work(comm, how):
    across = comm.split(0)
    for k in range(10):
        comm.allreduce(np.ones(10))
        across.allgatherv(np.ones(3))
        if k == 5 and comm.rank == 1:
            if how == "raises":
                raise ValueError("boom")
            elif how == "is-interrupted":
                os.kill(os.getpid(), signal.SIGINT)
            elif how == "is-killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "leaves":
                return
            elif how == "sleeps":
                time.sleep(3 * float(os.environ["MATCHWOOD_DIST_TIMEOUT"]))
            elif how == "strays":
                across.barrier()
            elif how == "differs":
                comm.allreduce(np.ones(11))

for way in sys.argv[1:]:
    how, *settings = way.split(",")
    os.environ.update(setting.split("=") for setting in settings)
    try:
        with mw.dist.world() as comm:
            work(comm, how)
    except BaseException as error:
        traced = "traced" if "work(comm, how)" in getattr(error, "traceback", "") else ""
        say(how, comm.rank, type(error).__name__, error, traced)
if how != "sleeps":  # a new communicator works after all that
    with mw.dist.world() as comm:
        assert comm.allreduce(np.ones(1))[0] == comm.size
"""


def said(*ways, **extra):
    """What the ranks say when rank 1 of 3 does each of those, one line a rank.

    A way may be followed by settings of the environment, which count from there on.
    """
    lines = [line.rstrip() for line in mpiexec(3, FAULTS, *ways, **extra).lines]
    names = [way.split(",")[0] for way in ways]
    found = {way: [line[len(way) + 1 :] for line in lines if line.startswith(way)] for way in names}
    for way, those in found.items():
        assert [line[0] for line in those] == ["0", "1", "2"], (way, those)
    return found


@pytest.mark.slow
def test_failures_reach_all_ranks():
    """While debugging it is also told who differs."""
    found = said("raises", "is-interrupted", "leaves", "differs,MATCHWOOD_DIST_DEBUG=1")
    told = "RankFailed rank 1 failed: ValueError: boom traced"
    assert found["raises"] == [f"0 {told}", "1 ValueError boom", f"2 {told}"]
    assert found["is-interrupted"][1] == "1 KeyboardInterrupt"
    for line in found["is-interrupted"][::2]:
        assert "RankFailed rank 1 failed: KeyboardInterrupt" in line
    for line in found["leaves"]:
        assert "RankFailed rank 1 failed: RuntimeError: it left while others wait" in line
    for line in found["differs"]:
        assert "rank 1 called allreduce(float64, (11,), sum), but ranks 0 and 2 called" in line


@pytest.mark.slow
def test_the_timeout_names_who_did_not_come():
    try:
        who_did_not_come(1)
    except AssertionError:  # on a busy machine others may be late too
        who_did_not_come(20)


def who_did_not_come(seconds):
    found = said("strays", "sleeps", MATCHWOOD_DIST_TIMEOUT=str(seconds))
    lines = " ".join(found["strays"])
    told = f"TimeoutError: rank 1 has not come to allreduce within {seconds} s"
    assert told in lines or (
        f"TimeoutError: ranks 0 and 2 have not come to barrier within {seconds} s" in lines
    )
    assert "waits in" in lines
    for line in found["sleeps"]:
        assert f"rank 1 failed: {told}" in line
        assert "rank 1 does not answer" in line


@pytest.mark.slow
def test_a_killed_rank_ends_the_job():
    """Who would wait for the killed one until the timeout would not end in time for mpiexec."""
    done = mpiexec(3, FAULTS, "is-killed", check=False, MATCHWOOD_DIST_TIMEOUT="600")
    assert done.returncode != 0


FORGOTTEN = """
import sys
import numpy as np
import matchwood as mw
from dist.mpi import say

comm = mw.dist.world()
comm.barrier()
if comm.rank == 1:
    raise OSError("not in a with statement")
try:
    comm.allreduce(np.ones(1))
except mw.RankFailed as error:
    say(comm.rank, error)
"""


@pytest.mark.slow
def test_a_program_that_ends_outside_a_with_statement():
    """Also then nobody waits for ever."""
    done = mpiexec(3, FORGOTTEN, check=False)
    assert done.returncode != 0
    assert "OSError: not in a with statement" in done.stderr
    assert len(done.lines) == 2
    for line in done.lines:
        assert "rank 1 failed: RuntimeError: it left while others wait for it in allreduce" in line


UNCAUGHT = """
import matchwood as mw
with mw.dist.world() as comm:
    if comm.rank == 2:
        raise OSError("uncaught")
    comm.barrier()
"""


@pytest.mark.slow
def test_an_uncaught_error_ends_the_job():
    done = mpiexec(3, UNCAUGHT, check=False)
    assert done.returncode != 0
    assert done.stderr.count("rank 2 failed: OSError: uncaught") == 2
    assert "Where rank 2 failed:" in done.stderr


INTERRUPTED = """
import os, signal, threading, time
import matchwood as mw
from dist.mpi import say

comm = mw.dist.world(threads=1)
G = mw.distribute(mw.generators.path(2_000_000) if comm.rank == 0 else None, comm=comm)
mw.bfs(G, 1_999_990, depth_limit=5)             # compiles
if comm.rank == 1:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    with comm:
        mw.bfs(G, 0)
except (KeyboardInterrupt, mw.RankFailed) as error:
    assert time.monotonic() - began < 30        # the search takes longer on any machine
    say(comm.rank, type(error).__name__, getattr(error, "rank", ""))
"""


@pytest.mark.slow
def test_a_rank_that_is_interrupted_in_a_narrow_level():
    """The others wait for it within a kernel, and raise."""
    done = mpiexec(3, INTERRUPTED, check=False, MATCHWOOD_DIST_COPY="0")
    assert done.lines == ["0 RankFailed 1", "1 KeyboardInterrupt ", "2 RankFailed 1"], done.stderr


REFERRED = """
import os, signal, sys, threading, time
import matchwood as mw
from dist.mpi import say

for rank in map(int, sys.argv[1:]):
    comm = mw.dist.world(threads=1)
    G = mw.distribute(mw.generators.path(1000) if comm.rank == 0 else None, comm=comm)
    mw.label_propagation(G)                         # compiles
    G = mw.distribute(mw.generators.path(1_000_000) if comm.rank == 0 else None, comm=comm)
    mw.label_propagation(G, max_rounds=1)
    if comm.rank == rank:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        mw.label_propagation(G, max_rounds=100_000, tol=0)
    except (KeyboardInterrupt, mw.RankFailed) as error:
        assert time.monotonic() - began < 3         # the call takes longer on any machine
        say(rank, comm.rank, type(error).__name__, getattr(error, "rank", ""))
"""


@pytest.mark.slow
def test_a_rank_that_is_interrupted_while_the_first_computes():
    done = mpiexec(3, REFERRED, "0", "1", check=False)
    assert done.lines == [
        "0 0 KeyboardInterrupt ", "0 1 RankFailed 0", "0 2 RankFailed 0",
        "1 0 RankFailed 1", "1 1 KeyboardInterrupt ", "1 2 RankFailed 1",
    ], done.stderr  # fmt: skip


LONG = """
import time
import numpy as np
import matchwood as mw
from dist.mpi import say

with mw.dist.world(threads=1) as comm:
    G = mw.distribute(mw.generators.path(50) if comm.rank == 0 else None, comm=comm)
    G.on_first(lambda A: np.zeros(50))                      # gathers
    timeout, comm.session.timeout = comm.session.timeout, 0.5
    def work(A):
        time.sleep(2)
        return np.arange(50)
    found = G.on_first(work)
    assert not comm.session.resting
    comm.session.timeout = timeout
    say(comm.rank, (found.gather(None) == np.arange(50)).all())
"""


@pytest.mark.slow
def test_ranks_wait_for_the_first_as_long_as_it_works():
    assert mpiexec(2, LONG).lines == ["0 True", "1 True"]
