"""Attacks on communicators: strange arrays, strange errors, and use at the wrong time."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import matchwood as mw
from adversarial.clock import seconds
from dist.bodies import same
from matchwood.dist import Serial, run
from matchwood.engines.ranks.faults import difference, failure_of, listed, shortened
from matchwood.engines.ranks.networks.polled import NOTICE_BYTES, Control, fitting
from support import looped

# Strange arrays


class Loud(np.ndarray):
    """A subclass: results are plain arrays."""


def test_subclasses_and_mapped_files(tmp_path):
    path = tmp_path / "numbers"
    np.arange(12, dtype=np.int16).tofile(path)

    def work(comm):
        mapped = np.memmap(path, np.int16, "r")
        for given in (mapped, np.arange(12, dtype=np.int16).view(Loud)):
            for found in (
                comm.allreduce(given, "max"),
                comm.allgather(given)[:12],
                comm.allgatherv(given)[0][-12:],
                comm.broadcast(given if comm.rank == 0 else None),
                comm.alltoallv(given, [4] * 3)[0].repeat(3)[::3],
            ):
                assert type(found) is np.ndarray
                assert found.flags.writeable
        same(comm.allreduce(mapped, "min"), np.arange(12, dtype=np.int16))

    run(work, 3)


@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy's, of inf - inf
def test_numbers_that_are_not_finite():
    """NaN wins extremes, as in NumPy; infinities cancel in the order of ranks."""

    def work(comm):
        mine = np.array([np.nan if comm.rank == 1 else comm.rank, np.inf if comm.rank else -np.inf])
        for op in ("sum", "min", "max"):
            found = comm.allreduce(mine, op)
            assert np.isnan(found[0])
        assert np.isnan(comm.allreduce(mine)[1])
        return comm.allreduce(np.array([0.0 if comm.rank else -0.0]), "min").tobytes()

    assert len(set(run(work, 3))) == 1  # the same zero on all ranks


def test_sums_wrap_as_numpy_does():
    def work(comm):
        return comm.allreduce(np.array([200], np.uint8))[0]

    assert run(work, 3) == [600 % 256] * 3


def test_huge_counts_are_refused_before_any_work():
    for counts in ([2**62, 2**62, 2**62], np.array([2**64 - 1, 0, 1], np.uint64), [10**30, 0, 0]):
        with pytest.raises(mw.RankFailed, match="counts"):
            run(lambda comm, counts=counts: comm.alltoallv(np.ones(0), counts), 3)


@pytest.mark.slow
def test_random_exchanges_against_their_definition():
    """Random tables, types and layouts, in worlds and in splits of them."""
    deadline = time.monotonic() + seconds(2)

    def work(comm, seed):
        rng = np.random.default_rng(seed)
        group = comm.split(int(rng.integers(2)) if comm.size > 1 else 0, 0)
        colors = comm.objects(group.size)
        assert all(size == group.size for size in colors)  # the same draw on all ranks
        for _ in range(6):
            dtype = rng.choice(["bool", "int8", "uint16", "int64", "float32", "complex128"])
            table = rng.integers(0, rng.choice([1, 4, 3000]), (group.size, group.size))
            sent = [rng.integers(0, 2, int(row.sum()) * 2).astype(dtype) for row in table]
            mine = sent[group.rank][::2]
            found, counts = group.alltoallv(mine, table[group.rank])
            bounds = [np.cumsum([0, *row]) for row in table]
            runs = [
                part[::2][b[group.rank] : b[group.rank + 1]]
                for part, b in zip(sent, bounds, strict=True)
            ]
            same(found, np.concatenate(runs))
            assert counts.tolist() == table[:, group.rank].tolist()
            same(group.allgatherv(mine)[0], np.concatenate([part[::2] for part in sent]))

    seed = 0
    while seed < 10 or time.monotonic() < deadline:
        run(work, 1 + seed % 6, seed)
        seed += 1


# Strange errors


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@looped(
    "error",
    [
        Unprintable(),
        ValueError("\udcff broken letters"),
        ValueError("ä" * 100_000),
        KeyError("k"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        MemoryError(),
        type("Ünruly" * 200, (Exception,), {})("x"),
        mw.RankFailed(0, "ValueError", "of another program"),
        StopIteration(),
    ],
)
def test_errors_of_any_kind_reach_the_others(error):
    raised = {}

    def work(comm):
        try:
            if comm.rank == 1:
                raise error
            comm.barrier()
        except mw.RankFailed as caught:
            raised[comm.rank] = caught
            raise

    with pytest.raises(mw.RankFailed):
        run(work, 3)
    assert {0, 2} <= set(raised)
    if not isinstance(error, mw.RankFailed):
        assert raised[0].type == type(error).__name__


class Wired(Control):
    """Notices kept in a list."""

    def __init__(self, rank=0, size=4):
        super().__init__(rank, size)
        self.sent = []

    def look(self):
        pass

    def send(self, rank, notice):
        self.sent.append((rank, notice))

    def finish(self):
        pass

    def abandon(self, held):
        pass


@looped(
    "text", ["", "plain", "ä" * 5000, "\U0001f600" * 5000, "\udcff" * 5000, "x" * 50_000, "\n" * 9]
)
def test_notices_are_short(text):
    """The receiver has room for so many bytes and no more."""
    control, other = Wired(), Wired(1)
    control.announce(mw.RankFailed(0, text, text, text))
    assert [rank for rank, _ in control.sent] == [1, 2, 3]
    assert all(len(notice) <= NOTICE_BYTES for _, notice in control.sent)
    other.hear(control.sent[0][1])
    assert other.failure.rank == 0
    assert text.isascii() is False or text.startswith(other.failure.message)
    control.end(None, failed=True)
    other.end(None, failed=True)


def test_many_communicators_fit_a_notice():
    entered = {(1, k, 0): k for k in range(5000)}
    kept = fitting(entered)
    assert (1, 4999, 0) in kept
    control = Wired()
    control.entered = entered
    control.leave()
    assert all(len(notice) <= NOTICE_BYTES for _, notice in control.sent)
    control.end(None, failed=True)


def test_who_has_left_and_who_is_missing():
    control = Wired()
    control.entered = {(): 5, (1, 0): 2}
    control.left = {1: {(): 5}, 2: {(): 4}}
    assert control.gone([0, 1, 2, 3], (), 5) == 2
    assert control.gone([0, 1, 3], (), 5) is None  # it came to the last one before it left
    assert control.gone([0, 1], (1, 0), 2) == 1
    control.left = {}
    control.answers = {1: ("barrier", {(): 4}), 2: ("allreduce", {(): 5})}
    missing, known = control.missing([0, 1, 2, 3], (), 5)
    assert missing == [1, 3]
    assert known == "rank 1 waits in barrier; rank 3 does not answer"
    control.end(None, failed=True)


def test_words():
    assert listed([4]) == "rank 4"
    assert listed([4, 2]) == "ranks 2 and 4"
    assert listed([1, 2, 3]) == "ranks 1, 2 and 3"
    assert difference([("a",)] * 3) is None
    assert difference([("a",), ("b",)]) == (
        1, "ranks differ: rank 1 called b(), but rank 0 called a()",
    )  # fmt: skip
    assert difference([("b",), ("a", 1), ("a", 1)])[0] == 0
    assert shortened("abcdef", 2) == "ab"
    assert shortened("abcdef", 2, end=True) == "ef"
    assert shortened("äää", 3) == "ä"
    assert shortened("abc", 0, end=True) == ""
    assert failure_of(2, Unprintable()).message == "(an exception that cannot be printed)"


# At the wrong time


def test_a_communicator_that_outlives_its_run():
    kept = run(lambda comm: comm, 3)
    with pytest.raises(mw.RankFailed, match="it returned while others wait for it in allreduce"):
        kept[0].allreduce(np.ones(1))


def test_a_rank_that_goes_on_after_a_failure():
    """It hears the same again, and never waits."""

    def work(comm):
        if comm.rank == 0:
            raise OSError("first")
        for _ in range(3):
            with pytest.raises(mw.RankFailed, match="rank 0 failed: OSError: first"):
                comm.barrier()
        comm.close()
        comm.fail(ValueError("too late to matter"))
        return "done"

    with pytest.raises(mw.RankFailed, match="rank 0 failed: OSError: first"):
        run(work, 3)


def test_an_error_while_others_read():
    """Raised inside a collective, when all have come."""

    def work(comm):
        comm.barrier()
        if comm.rank == 1:
            comm._read = lambda array, read: 1 / 0
        comm.allreduce(np.ones(40_000))

    with pytest.raises(mw.RankFailed, match="rank 1 failed: ZeroDivisionError") as failed:
        run(work, 4)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_a_listener_that_raises():
    def work(comm):
        comm.listener = lambda *report: 1 / 0
        comm.report(1)

    with pytest.raises(mw.RankFailed, match="ZeroDivisionError"):
        run(work, 2)


def test_nothing_piles_up():
    """Meetings are forgotten when they are over."""

    def work(comm):
        for _ in range(300):
            comm.allreduce(np.ones(2))
            comm.split(comm.rank % 2).barrier()
        comm.barrier()
        return comm

    comm = run(work, 3)[0]
    assert comm._group.meetings == {}
    assert not comm._meetings._open
    assert comm._meetings._waiting == 0


def test_many_runs_at_once():
    """Halls share nothing: ranks of one program never meet those of another."""
    results = {}

    def program(k):
        steps = 20 + k

        def steady(comm):
            return sum(int(comm.allreduce(np.array([k]))[0]) for _ in range(steps))

        results[k] = run(steady, 3) == [3 * k * steps] * 3

    programs = [threading.Thread(target=program, args=(k,)) for k in range(6)]
    for each in programs:
        each.start()
    for each in programs:
        each.join()
    assert all(results.values())
    assert len(results) == 6


def test_one_rank_fails_like_many():
    comm = Serial()
    with pytest.raises(ValueError, match="boom"), comm:
        raise ValueError("boom")
    assert comm.closed
    with pytest.raises(mw.RankFailed, match="rank 0 failed: ValueError: boom"):
        comm.barrier()
