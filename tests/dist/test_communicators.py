"""Communicators of one rank and of threads: what every operation returns, and what it counts."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import matchwood as mw
from dist import bodies
from matchwood.dist import Serial, run
from support import looped


def test_one_rank():
    comm = Serial()
    assert (comm.rank, comm.size, comm.kind) == (0, 1, "serial")
    bodies.everything(comm)
    comm.close()
    comm.close()
    with pytest.raises(ValueError, match=r"allreduce: the communicator is closed; world\(\) gives"):
        comm.allreduce(np.ones(1))


@pytest.mark.slow
@looped("ranks", [1, 2, 3, 4, 6, 9])
def test_threads(ranks):
    run(bodies.everything, ranks, ranks != 3)


def test_results_come_by_rank():
    assert run(lambda comm, a, b: (comm.rank, a, b), 3, "a", 2) == [
        (0, "a", 2), (1, "a", 2), (2, "a", 2),
    ]  # fmt: skip
    assert (
        run(lambda comm: (comm.kind, comm.threads, comm.size), ranks=2, threads=3)
        == [("threads", 3, 2)] * 2
    )


def test_large_arrays_are_not_copied_for_sending(monkeypatch):
    """A meeting of large arrays hands over the arrays themselves."""
    from matchwood.engines.ranks.threads import Threads

    brought = []
    meet = Threads._meet

    def spying(self, thing):
        if isinstance(thing, tuple) and thing[1] is not None:
            brought.append(thing[1])
        return meet(self, thing)

    monkeypatch.setattr(Threads, "_meet", spying)
    arrays = [np.arange(50_000) for _ in range(2)]
    run(lambda comm: comm.allgather(arrays[comm.rank]), 2)
    assert all(any(given is array for given in brought) for array in arrays)


def test_run_inside_run():
    def inner(comm):
        return int(comm.allreduce(np.array([comm.rank + 1]))[0])

    def outer(comm):
        return run(inner, 3), int(comm.allreduce(np.array([1]))[0])

    assert run(outer, 2) == [([6, 6, 6], 2)] * 2


def test_no_thread_stays():
    before = set(threading.enumerate())
    for _ in range(5):
        run(lambda comm: comm.barrier(), 8)
    assert set(threading.enumerate()) <= before  # those of earlier tests may end meanwhile


def test_kernels_run_on_ranks():
    """Kernels on several ranks at once, each with a team of its own."""
    A = mw.generators.rmat(9, rng=1)
    expected = mw.connected_components(A).count

    def work(comm):
        count = mw.connected_components(A, threads=comm.threads).count
        return comm.allgather(np.array([count])).tolist()

    assert run(work, 4, threads=2) == [[expected] * 4] * 4


def test_reports_reach_the_listener():
    heard = []

    def work(comm):
        if comm.rank == 0:
            comm.listener = lambda *report: heard.append(report)
        comm.allreduce(np.ones(2))
        comm.report(1, 7)
        comm.report(2)
        return comm.traffic

    traffic = run(work, 2)[0]
    assert heard == [(1, 7, traffic), (2, None, traffic)]


def test_failures_travel():
    error = mw.RankFailed(3, "ValueError", "wrong", "Traceback: here\n")
    back = pickle.loads(pickle.dumps(error))
    assert (back.rank, back.type, back.message, back.traceback) == (
        3, "ValueError", "wrong", "Traceback: here\n",
    )  # fmt: skip
    assert str(back) == "rank 3 failed: ValueError: wrong"
    assert back.__notes__ == ["Where rank 3 failed:\nTraceback: here"]


# Wrong arguments


@looped(
    ("call", "error", "text"),
    [
        (lambda c: c.allreduce([1, 2]), TypeError, "allreduce: array must be a NumPy or CuPy arr"),
        (lambda c: c.allreduce(3), TypeError, "array must be a NumPy or CuPy array, got int"),
        (lambda c: c.allreduce(np.ones(2), "mean"), ValueError, "allreduce: op must be one of"),
        (lambda c: c.allreduce(np.ones(2), "or"), TypeError, "op='or' is not defined for float64"),
        (lambda c: c.allreduce(np.ones(2, bool)), TypeError, "op='or' says whether any is true"),
        (lambda c: c.allreduce(np.ones(2, complex), "max"), TypeError, "op='max' is not defined"),
        (lambda c: c.allreduce(np.array(["a"])), TypeError, "numbers or bools, got dtype <U1"),
        (lambda c: c.allreduce(np.array([None])), TypeError, "got dtype object"),
        (lambda c: c.allreduce(np.ones(2, ">f8")), TypeError, "got dtype >f8"),
        (lambda c: c.allreduce(np.ma.array([1])), TypeError, "got MaskedArray"),
        (
            lambda c: c.allgather(np.ones((2, 2))),
            ValueError,
            r"one-dimensional, got shape \(2, 2\)",
        ),
        (lambda c: c.allgather(np.array(1.0)), ValueError, r"one-dimensional, got shape \(\)"),
        (lambda c: c.allgatherv(None), TypeError, "allgatherv: array must be"),
        (lambda c: c.reduce_scatter(np.ones(3), [1, 1]), ValueError, "must add up to the 3 elem"),
        (lambda c: c.reduce_scatter(np.ones(3), [3]), ValueError, "one entry for each of 2 ranks"),
        (lambda c: c.alltoallv(np.ones(3), [4, -1]), ValueError, "must not be negative, got -1"),
        (lambda c: c.alltoallv(np.ones(3), [1.5, 1.5]), TypeError, "counts must hold integers"),
        (lambda c: c.alltoallv(np.ones(3), 3), ValueError, "one entry for each of 2 ranks"),
        (lambda c: c.alltoallv(np.ones(0), [2**63 - 1, 1]), ValueError, "must add up to the 0"),
        (lambda c: c.broadcast(np.ones(1), 2), ValueError, r"root must lie within 0..1, got 2"),
        (lambda c: c.broadcast(np.ones(1), True), TypeError, "root must be an integer, got True"),
        (lambda c: c.broadcast(np.ones(1), 1 - c.rank), TypeError, "array must be None except on"),
        (lambda c: c.split(-1), ValueError, "split: color must be at least 0, got -1"),
        (lambda c: c.split(1.0), TypeError, "split: color must be an integer"),
        (lambda c: c.split(1, "a"), TypeError, "split: key must be an integer"),
        (lambda c: c.objects(lambda: 1), Exception, "ickle"),
    ],
)
def test_wrong_arguments_are_named(call, error, text):
    """On the rank that gave them; the other one hears of it too."""
    raised = {}

    def work(comm):
        try:
            if comm.rank == 0:
                call(comm)
            comm.barrier()
        except BaseException as caught:
            raised[comm.rank] = caught
            raise

    with pytest.raises(mw.RankFailed, match=text) as failed:
        run(work, 2)
    assert isinstance(raised[0], error)
    assert isinstance(raised[1], mw.RankFailed)
    assert isinstance(failed.value.__cause__, error)
    assert raised[1].rank == failed.value.rank == 0
    assert raised[1].type == type(raised[0]).__name__
    assert raised[1].message == str(raised[0])


@looped(
    ("arguments", "error", "text"),
    [
        ((None,), TypeError, "run: function must be callable, got NoneType"),
        ((print, 0), ValueError, "run: ranks must be at least 1, got 0"),
        ((print, 1.5), TypeError, "run: ranks must be an integer"),
    ],
)
def test_wrong_arguments_of_run(arguments, error, text):
    with pytest.raises(error, match=text):
        run(*arguments)
    with pytest.raises(ValueError, match="run: threads must be at least 1, got 0"):
        run(print, 2, threads=0)


@looped(
    ("options", "error", "text"),
    [
        ({"engine": "tpu"}, ValueError, "world: engine must be one of 'cpu', 'gpu', got 'tpu'"),
        ({"kind": "pvm"}, ValueError, "world: kind must be one of"),
        ({"transport": "post"}, ValueError, "world: transport must be one of"),
        ({"threads": 0}, ValueError, "world: threads must be at least 1"),
    ],
)
def test_wrong_arguments_of_world(options, error, text):
    with pytest.raises(error, match=text):
        mw.dist.world(**options)


@looped("text", ["", "soon", "0", "-1", "nan", "inf"])
def test_the_timeout_is_a_number(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATCHWOOD_DIST_TIMEOUT", text)
        with pytest.raises(ValueError, match="MATCHWOOD_DIST_TIMEOUT must be a positive number"):
            Serial()


def test_a_rank_waits_for_something(monkeypatch):
    """Communicators of any kind, until it is there, or too long."""
    comm, left = Serial(), [3, 2, 1]
    comm.wait_until(lambda: not (left and left.pop()) and not left)
    assert not left
    monkeypatch.setenv("MATCHWOOD_DIST_TIMEOUT", "0.01")
    with pytest.raises(mw.RankFailed, match="rank 0 failed: TimeoutError: it waited for more than"):
        Serial().wait_until(lambda: False)
