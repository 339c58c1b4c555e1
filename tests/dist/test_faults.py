"""A rank that fails: the others raise within a second, in threads.  Under MPI: test_faults_mpi."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import time

import numpy as np
import pytest

import matchwood as mw
from dist.walks import Boom, outcome
from matchwood.dist import run
from matchwood.engines.ranks.agreement import together
from support import in_time, looped, start_script


def failures(function, ranks=4, *args):
    """What each rank raised, what `run` raised, and how long it took."""
    raised = {}

    def work(comm):
        try:
            function(comm, *args)
        except BaseException as error:
            raised[comm.rank] = error
            raise

    start = time.monotonic()
    with pytest.raises(mw.RankFailed) as caught:
        run(work, ranks)
    return raised, caught.value, time.monotonic() - start


def soon(function):
    """What ranks and `run` raised, within a second."""
    found = []

    def measure():
        *found[:], seconds = failures(function)
        return seconds

    in_time(measure, 1)
    return found


def test_an_error_reaches_all_ranks():
    def work(comm):
        comm.barrier()
        if comm.rank == 2:
            raise Boom("here")
        comm.allreduce(np.ones(3))

    raised, error = soon(work)
    assert isinstance(raised[2], Boom)
    for rank in (0, 1, 3):
        told = raised[rank]
        assert isinstance(told, mw.RankFailed)
        assert (told.rank, told.type, told.message) == (2, "Boom", "here")
        assert 'raise Boom("here")' in told.traceback
    assert isinstance(error.__cause__, Boom)
    assert str(error) == "rank 2 failed: Boom: here"


def test_a_rank_that_returns_early():
    def work(comm):
        if comm.rank != 1:
            comm.allgather(np.ones(1))

    raised, error = soon(work)
    assert sorted(raised) == [0, 2, 3]
    assert "rank 1 failed: RuntimeError: it returned while others wait for it in allg" in str(error)


def test_a_rank_that_returns_before_others_come():
    def work(comm):
        if comm.rank != 1:
            time.sleep(0.05)
            comm.allgather(np.ones(1))

    assert "it returned while others wait for it in allgather" in str(failures(work)[1])


def test_ranks_that_wait_for_each_other():
    """Nobody is left who could come: said at once, not after the timeout."""

    def work(comm):
        across = comm.split(0)
        (comm if comm.rank == 0 else across).barrier()

    raised, error = soon(work)
    assert len(raised) == 4
    waits = "barrier waits for rank 0; barrier waits for ranks 1, 2 and 3"
    assert f"all ranks wait for each other: {waits}" in str(error)


@looped(
    ("call", "text"),
    [
        (lambda c: c.allreduce(np.ones(3)), "allreduce(float64, (3,), sum)"),
        (lambda c: c.allreduce(np.ones(2, np.float32)), "allreduce(float32, (2,), sum)"),
        (lambda c: c.allreduce(np.ones(2), "max"), "allreduce(float64, (2,), max)"),
        (lambda c: c.allgather(np.ones(2)), "allgather(float64, 2)"),
        (lambda c: c.barrier(), "barrier()"),
        (lambda c: c.broadcast(np.ones(2), 2), "broadcast(2)"),
        (lambda c: c.reduce_scatter(np.ones(4), [1] * 4), "reduce_scatter(float64, [1, 1, 1, 1]"),
        (lambda c: c.objects(1), "objects()"),
        (lambda c: c.split(1), "split()"),
    ],
)
def test_ranks_that_differ_are_named(call, text):
    def work(comm):
        if comm.rank == 2:
            call(comm)
        else:
            comm.allreduce(np.ones(2))

    raised, _ = soon(work)
    assert len(raised) == 4
    for told in raised.values():
        assert (told.rank, told.type) == (2, "ValueError")
        assert f"ranks differ: rank 2 called {text}" in told.message
        assert "but ranks 0, 1 and 3 called allreduce(float64, (2,), sum)" in told.message


def test_lengths_that_differ_are_named():
    def work(comm):
        comm.allgather(np.ones(3 + (comm.rank == 1)))

    assert "rank 1 called allgather(float64, 4), but ranks 0, 2" in str(failures(work)[1])


@pytest.mark.slow
def test_the_timeout_names_who_did_not_come(monkeypatch):
    for seconds in (0.2, 2, 20):  # on a busy machine others may be late too
        monkeypatch.setenv("MATCHWOOD_DIST_TIMEOUT", str(seconds))

        def work(comm, seconds=seconds):
            if comm.rank in (1, 3):
                time.sleep(3 * seconds)
            comm.allreduce(np.ones(1))

        raised, error, _ = failures(work)
        assert len(raised) == 4
        assert error.type == "TimeoutError"
        if "ranks 1 and 3 have not come" in error.message:
            break
    assert error.rank == 1
    assert f"ranks 1 and 3 have not come to allreduce within {seconds} s" in error.message
    assert "MATCHWOOD_DIST_TIMEOUT" in error.message


def test_the_communicator_is_closed_after_a_failure():
    def work(comm):
        across = comm.split(0)
        with pytest.raises((mw.RankFailed, Boom)):
            if comm.rank == 0:
                with comm:
                    raise Boom("x")
            comm.barrier()
        assert comm.closed
        assert across.closed
        for each in (comm, across):
            with pytest.raises(mw.RankFailed, match="rank 0 failed: Boom: x"):
                each.allreduce(np.ones(1))
        each.close()  # nothing happens

    with pytest.raises(mw.RankFailed, match="rank 0 failed: Boom: x"):
        run(work, 3)


def test_a_rank_that_has_finished_hears_of_a_late_failure():
    def work(comm):
        with comm:
            if comm.rank == 1:
                time.sleep(0.1)
                raise Boom("late")

    raised, error, _ = failures(work)
    assert len(raised) == 4
    assert error.message == "late"


def test_the_smallest_rank_counts_where_several_fail():
    def work(comm):
        raise Boom(f"rank {comm.rank}")

    for _ in range(20):
        with pytest.raises(mw.RankFailed, match="rank 0 failed: Boom: rank 0"):
            run(work, 5)


def inject(seeds):
    """Walks in which a rank fails: nobody is left waiting, and all end within a second of it."""
    for seed in seeds:
        in_time(functools.partial(one_failure, seed), 1)


def one_failure(seed):
    """Seconds from a rank's failure until all have ended."""
    ranks, fails, ends = 2 + seed % 5, {}, {}

    def work(comm):
        ends[comm.rank] = outcome(lambda: comm, seed, fails)

    start = time.monotonic()
    with contextlib.suppress(mw.RankFailed):
        run(work, ranks)
    said = {rank: how for rank, (how, _) in ends.items()}
    assert len(ends) == ranks, (seed, said)
    assert "late" not in said.values(), (seed, said)
    assert sum(how in ("RankFailed", "ValueError") for how in said.values()) >= ranks - 1
    return max(when for _, when in ends.values()) - fails.get("at", start)


@pytest.mark.slow
def test_injected_failures():
    inject(range(150))
    assert not [thread for thread in threading.enumerate() if "matchwood rank" in thread.name]


@pytest.mark.slow
def test_a_thousand_injected_failures():
    inject(range(1000, 2000))


INTERRUPTED = """
    import sys, time
    import numpy as np
    import matchwood as mw

    def waiting(comm):
        if comm.rank == 0:
            print("ready", flush=True)
            time.sleep(0.3)
            while sys.argv[1] == "computing":
                pass
            time.sleep(60)
        comm.allreduce(np.ones(1))

    try:
        mw.dist.run(waiting, 4)
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["computing", "waiting"])
def test_control_c(tmp_path, what):
    """Within 100 ms, whether ranks compute or wait."""

    def measure():
        with start_script(tmp_path, INTERRUPTED, what) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.4)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=100)
        assert out, err
        assert process.returncode == 0
        return float(out) - sent

    in_time(measure, 0.1)


def test_a_fault_in_what_ranks_do_together():
    """No error of an argument: the others, which wait for this rank, hear of it at once."""

    def body(comm):
        try:
            together(comm, lambda: {}[comm.rank] if comm.rank == 1 else None)
        except KeyError:
            assert comm.closed

    with pytest.raises(mw.RankFailed, match="rank 1 failed: KeyError"):
        run(body, 3)
