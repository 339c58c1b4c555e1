"""Members that wait in machine code: what reaches a kernel, and that no wake or task is lost."""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest

from forked import forked_script
from matchwood.engines import frozen
from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    crew,
    device,
    jit,
    kernel,
    members,
    native,
    pinning,
)
from matchwood.engines.cpu.team import STOP
from support import looped, run_script, until

LARGE = 10**9

pytestmark = pytest.mark.skipif(not native.POSSIBLE, reason="no mailboxes on this system")


@pytest.fixture(params=["natively", "through Python"])
def way(request, monkeypatch):
    """Both ways to begin."""
    if request.param == "through Python":
        monkeypatch.setattr(native, "ready", lambda: False)
    return request.param


# Arguments


@kernel
def _describe(team, a, found):
    """Where an array lies and how large it is, as rank 1 sees it."""
    if team.me == 1:
        found[0], found[1], found[2], found[3] = a.ctypes.data, a.size, a.itemsize, a.ndim
        for k in range(a.ndim):
            found[4 + k], found[8 + k] = a.shape[k], a.strides[k]


@kernel
def _add_up(team, a, total):
    if team.me == 1:
        for x in a.flat:
            total[0] += x


NUMBERS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
           np.uint64, np.float32, np.float64, np.complex64, np.complex128]  # fmt: skip
PAIRS = np.dtype([("first", np.int32), ("second", np.float64)])


def _read_only(a):
    a.flags.writeable = False
    return a


SHAPES = {
    "a number": lambda a: a[:1].reshape(()),
    "a row": lambda a: a,
    "empty": lambda a: a[:0],
    "every other": lambda a: a[1::2],
    "backwards": lambda a: a[::-1],
    "a table": lambda a: a.reshape(4, 6),
    "a table by columns": lambda a: np.asfortranarray(a.reshape(4, 6)),
    "part of a table": lambda a: a.reshape(4, 6)[::-2, 1::3],
    "no rows": lambda a: a.reshape(4, 6)[:0],
    "a block": lambda a: a.reshape(2, 3, 4).transpose(1, 0, 2),
    "read-only": lambda a: _read_only(a.copy()),
    "repeated": lambda a: np.broadcast_to(a[:4], (3, 4)),
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1),
}
FEW_SHAPES = ("a row", "every other", "part of a table")
EVERY_SHAPE = (np.uint16, np.float64, PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*NUMBERS, PAIRS], ids=str)
def test_arrays_of_all_kinds_arrive(way, dtype):
    """Every shape for some types, some shapes for every type; each pair costs two compilations."""
    for shape in SHAPES if dtype in EVERY_SHAPE else FEW_SHAPES:
        assert_arrives(way, dtype, shape)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [kind for kind in NUMBERS if kind not in EVERY_SHAPE], ids=str)
@looped("shape", [shape for shape in SHAPES if shape not in FEW_SHAPES])
def test_all_arrays_arrive(way, dtype, shape):
    assert_arrives(way, dtype, shape)


def assert_arrives(way, dtype, shape):
    a = np.arange(24).astype(dtype) if dtype is not PAIRS else np.zeros(24, PAIRS)
    a = SHAPES[shape](a)
    found = np.zeros(12, np.int64)
    crew(2, work=LARGE).run(_describe, a, found)
    expected = [a.ctypes.data, a.size, a.itemsize, a.ndim]
    assert found[:4].tolist() == expected
    assert found[4 : 4 + a.ndim].tolist() == list(a.shape)
    assert found[8 : 8 + a.ndim].tolist() == list(a.strides)
    if dtype is not PAIRS and dtype is not np.bool_:
        total = np.zeros(1, np.complex128)
        crew(2, work=LARGE).run(_add_up, a, total)
        assert total[0] == a.sum(dtype=np.complex128)


@kernel
def _first(team, arrays, found):
    found[0] = arrays[0][0] + arrays[1][0]


def test_read_only_arrays_need_no_code_of_their_own(way):
    a, found = np.arange(1, 5), np.zeros(1, np.int64)
    for arrays in itertools.product((a, frozen(a)), repeat=2):
        crew(2, work=LARGE).run(_first, arrays, found)
        assert found[0] == 2
        crew(1, work=1).run(_first, arrays, found)
    assert len(jit._with_entry(_first).overloads) == 1


@kernel
def _keep(team, value, places):
    places[team.me] = value


VALUES = [
    0, 5, -1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, True, False, 0.1, -0.0, np.inf, 5e-324,
    np.True_, np.False_, np.float32(0.1), np.float32(-np.inf), np.float64(1e300),
    *(kind(limit) for kind in NUMBERS[1:9] for limit in (np.iinfo(kind).min, np.iinfo(kind).max)),
]  # fmt: skip


@looped("value", VALUES)
def test_numbers_of_all_kinds_arrive(way, value):
    kind = np.asarray(value).dtype
    places = np.full(3, 99).astype(kind)
    crew(3, work=LARGE).run(_keep, value, places)
    assert places.tobytes() == np.full(3, value, kind).tobytes()


def test_not_a_number_keeps_its_bits(way):
    for kind, bits in ((np.float64, 0x7FF8_0000_0000_1234), (np.float32, 0x7FC0_1234)):
        word = np.uint64 if kind is np.float64 else np.uint32
        value = np.array([bits], word).view(kind)[0]
        places = np.zeros(2, kind)
        crew(2, work=LARGE).run(_keep, value, places)
        assert places.view(word).tolist() == [bits, bits]


class Pair(NamedTuple):
    first: object
    second: object


@kernel
def _take_apart(team, nothing, pair, nested, places):
    if nothing is None:
        places[team.me, 0] = pair.first[1]
        places[team.me, 1] = pair.second.second
        places[team.me, 2] = nested[0][1][0]
        places[team.me, 3] = nested[1].first[team.me]
        places[team.me, 4] = len(nested[2])
        places[team.me, 5] = nested[3][2]


def test_tuples_and_records_arrive(way):
    x, y = np.arange(5.0), np.arange(4, dtype=np.uint16)
    pair = Pair(x, Pair(np.float32(2.5), -7))
    nested = (1, (np.int8(-3), True)), Pair(y, None), (), (7, 8, 9)
    places = np.zeros((3, 6))
    crew(3, work=LARGE).run(_take_apart, None, pair, nested, places)
    assert places.tolist() == [[1, -7, -3, rank, 0, 9] for rank in range(3)]


@kernel
def _mix(team, first, a, second, b, third, places):
    k = 0
    for x in first:
        places[team.me, k] = x
        k += 1
    for x in second:
        places[team.me, k] = x
        k += 1
    for x in third:
        places[team.me, k] = x
        k += 1
    places[team.me, k] = a[team.me]
    places[team.me, k + 1] = b[team.me, 1]


@pytest.mark.slow
@looped("count", [1, 2, 5, 7, 8, 9, 20])
def test_more_numbers_than_registers(way, count):
    """Those that fit are passed in registers, the others in memory; arrays lie between them."""
    first = tuple(0.5 + k for k in range(count))
    second = tuple(np.float32(-k - 0.25) for k in range(count))
    third = tuple(np.int16(-k) for k in range(count))
    a, b = np.arange(3) * 10, np.arange(6.0).reshape(3, 2).T.copy().T
    places = np.zeros((3, 3 * count + 2))
    crew(3, work=LARGE).run(_mix, first, a, second, b, third, places)
    for rank in range(3):
        assert places[rank].tolist() == [*first, *second, *third, a[rank], b[rank, 1]]


@kernel
def _first_of_each(team, arrays, places):
    k = 0
    for a in arrays:
        places[team.me, k] = a[0]
        k += 1  # noqa: SIM113  Numba unrolls the loop over a tuple


@pytest.mark.slow
@looped("count", [1, 30, 33, 34, 35, 60])
def test_very_many_arrays(count):
    arrays = tuple(np.array([k]) for k in range(count))
    places = np.zeros((2, count), np.int64)
    crew(2, work=LARGE).run(_first_of_each, arrays, places)
    assert places.tolist() == [list(range(count))] * 2


@device
def _doubled(x):
    return 2 * x


@kernel
def _apply(team, function, x):
    x[team.me] = function(x[team.me])


def test_functions_and_complex_numbers_arrive():
    x = np.arange(3)
    crew(3, work=LARGE).run(_apply, _doubled, x)
    assert x.tolist() == [0, 2, 4]
    for value in (1 + 2j, np.complex64(3 - 1j)):
        places = np.zeros(2, np.complex128)
        crew(2, work=LARGE).run(_keep, value, places)
        assert places.tolist() == [value, value]


def test_a_shape_that_changes_between_runs_is_seen():
    """Nothing of an array is remembered but its kind."""
    a, found = np.arange(6).reshape(2, 3).copy(), np.zeros(12, np.int64)
    for shape in ((2, 3), (3, 2), (6, 1)):
        a.shape = shape
        crew(2, work=LARGE).run(_describe, a, found)
        assert found[4:6].tolist() == list(shape)


# Many runs


@kernel
def _count(team, x, rounds):
    atomic_add(x, 0, 1)
    for _ in range(rounds):
        if barrier(team):
            return
    atomic_add(x, 1, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 40])
def test_thousands_of_runs(size):
    team, x, times = crew(size, work=LARGE), np.zeros(2, np.int64), 3000 // size + 100
    for _ in range(times):
        team.run(_count, x, 1)
    assert x.tolist() == [size * times] * 2


@pytest.mark.slow
def test_pauses_of_all_lengths_between_runs():
    """Members are awake, fall asleep, or sleep when the next kernel comes."""
    rng, x = random.Random(5), np.zeros(2, np.int64)
    for turn in range(1500):
        size = rng.choice((1, 2, 3, 5))
        x[:] = 0
        crew(size, work=LARGE).run(_count, x, turn % 3)
        assert x.tolist() == [size, size]
        end = time.perf_counter() + rng.random() * 2e-4
        while time.perf_counter() < end:
            pass
        if turn % 7 == 0:
            time.sleep(rng.random() * 1e-3)


def test_kernels_and_tasks_in_python_from_several_threads():
    """They share members, which go back and forth between their places and Python."""
    problems = []

    def call(number):
        rng = random.Random(number)
        try:
            for _ in range(150):
                size = rng.randrange(1, 6)
                if rng.random() < 0.5:
                    x = np.zeros(2, np.int64)
                    crew(size, work=LARGE).run(_count, x, 2)
                    assert x.tolist() == [size, size]
                else:
                    done = []
                    crew(size, work=LARGE).spread(done.append, 4)
                    assert sorted(done) == [0, 1, 2, 3]
                time.sleep(rng.choice((0, 0, 1e-5, 1e-3)))
        except BaseException as error:
            problems.append(error)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert problems == []


def test_more_members_than_bits_of_the_bell():
    x = np.zeros(2, np.int64)
    for size in (50, 40, 33, 2, 50):
        x[:] = 0
        crew(size, work=LARGE).run(_count, x, 1)
        assert x.tolist() == [size, size]
        time.sleep(0.005)  # so that they sleep


# Posts


def _run(x, size):
    entry, record = native.entered(_count, size, (x, 0))
    entry.fill(record, (x, 0))
    return native.Run(record, "count", (x,)), native.Control.from_buffer(record, 8 * entry.words)


def test_members_that_have_not_begun_never_begin_after_a_cancel():
    crew(2, work=LARGE).run(_count, np.zeros(2, np.int64), 0)
    x, places = np.zeros(2, np.int64), [_Place(), _Place(), _Place()]
    run, words = _run(x, 3)
    run.cancel()  # nothing has been posted yet
    assert words[STOP] == 0
    run.begin(places)
    places[1].mailbox.call()
    places[1].mailbox.attend()  # this one has run; the others never looked
    assert x.tolist() == [1, 1]
    assert not run.wait()
    run.cancel()
    assert run.wait()
    assert words[STOP] == 1
    for place in places:
        place.mailbox.call()
        place.mailbox.attend()
    assert x.tolist() == [1, 1]


@pytest.mark.slow
def test_a_caller_that_was_torn_away_does_no_harm():
    """A second Ctrl-C may end even `cancel`: members that come late find arrays that exist."""
    import gc
    import weakref

    crew(2, work=LARGE).run(_count, np.zeros(2, np.int64), 0)
    x, y, places = np.zeros(2, np.int64), np.zeros(2, np.int64), [_Place(), _Place()]
    run, _ = _run(x, 2)
    run.begin(places)
    seen = weakref.ref(run)
    del run
    gc.collect()
    assert seen() is not None
    places[0].mailbox.call()
    places[0].mailbox.attend()
    assert x.tolist() == [1, 1]
    other, _ = _run(y, 2)  # the next caller's, at places one of which has not looked yet
    other.begin(places)
    for place in places:
        place.mailbox.call()
        place.mailbox.attend()
    assert other.wait()
    assert (x.tolist(), y.tolist()) == ([1, 1], [2, 2])
    native._unfinished.clear()


class _Place:
    def __init__(self):
        self.mailbox, self.cpu = native.Mailbox(), pinning.ANYWHERE


def test_a_task_whose_call_was_lost_is_done_with_the_next():
    """Ctrl-C may come between the two; later tasks must not wait behind it for ever."""
    crew(2, work=LARGE).run(_count, np.zeros(2, np.int64), 0)
    member, done = members.Member(), []
    assert member.mailbox is not None
    member._tasks.put(lambda: done.append("lost"))
    time.sleep(0.01)
    assert done == []
    member.assign(lambda: done.append("next"))
    until(lambda: len(done) == 2)
    assert done == ["lost", "next"]
    member.retire()
    member.join(30)
    assert not member.is_alive()


def test_a_run_keeps_its_arrays_alive_and_an_idle_member_does_not():
    class Watched(np.ndarray):
        pass

    import gc
    import weakref

    x = np.zeros(2, np.int64).view(Watched)
    seen = weakref.ref(x)
    crew(2, work=LARGE).run(_count, x, 3)
    assert x.tolist() == [2, 2]
    del x
    gc.collect()
    assert seen() is None


# Exceptions


@kernel
def _raise(team, which):
    if team.me == which:
        if which == 0:
            raise ValueError("from inside", 3)
        if which == 1:
            raise KeyError
        raise ZeroDivisionError("the third")
    while not barrier(team):
        pass


def test_exceptions_arrive_with_their_arguments(way):
    for which, (kind, arguments) in enumerate(
        [(ValueError, ("from inside", 3)), (KeyError, ()), (ZeroDivisionError, ("the third",))]
    ):
        with pytest.raises(kind) as caught:
            crew(3, work=LARGE).run(_raise, which)
        assert caught.value.args == arguments


@pytest.mark.slow
def test_an_index_out_of_bounds_is_an_error_where_numba_tests_it(tmp_path):
    script = """
    import numpy as np
    from matchwood.engines.cpu import barrier, crew, kernel
    from matchwood.engines.cpu import native

    @kernel
    def read(team, x, i):
        x[0] = x[i + team.me]
        if barrier(team):
            return

    native.PYTHON_RUNS = 0
    for threads in (1, 3):
        crew(threads, work=10**9).run(read, np.zeros(9), 2)
        try:
            crew(threads, work=10**9).run(read, np.zeros(9), 9)
        except IndexError as error:
            print(native.ready())
    """
    assert run_script(tmp_path, script, NUMBA_BOUNDSCHECK="1").split() == ["True", "True"]


# Where it is not possible


NO_MAILBOXES = (
    "native.POSSIBLE = False",
    "del native.mailboxes.attend",
    "native._works = lambda made: False",
    "native.machine_code = lambda: 1 / 0",
)


@pytest.mark.slow
def test_without_mailboxes_everything_works(tmp_path):
    """Each way in a child of one process that has imported everything and begun nothing."""
    script = """
    import os, sys, traceback
    import numpy as np
    from matchwood.engines.cpu import atomic_add, barrier, crew, kernel
    from matchwood.engines.cpu import native

    @kernel
    def count(team, x):
        atomic_add(x, 0, 1)
        if barrier(team):
            return

    def work():
        for size in (1, 2, 3):
            x, done = np.zeros(1, np.int64), []
            crew(size, work=10**9).run(count, x)
            crew(size, work=10**9).spread(done.append, 3)
            assert x[0] == size and sorted(done) == [0, 1, 2], (x, done)
        assert not native.ready()

    for how in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            try:
                exec(how)
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status == 0, how
        print(how)
    """
    assert forked_script(tmp_path, script, *NO_MAILBOXES).splitlines() == list(NO_MAILBOXES)


def test_the_trial_notices_what_is_wrong(monkeypatch):
    """It must be able to fail: fields that lie elsewhere, a `fill` that does something else."""
    made = native.machine_code()
    assert native._works(made)
    with monkeypatch.context() as patch:
        patch.setattr(native, "HEAD", native.HEAD + 1)
        assert not native._works(made)
    assert not native._works({"fill": lambda *words: 0})


# The end of a process


ENDING = """
    import os, sys, threading, time
    import numpy as np
    from matchwood.engines.cpu import atomic_add, crew, kernel, stopping

    @kernel
    def count(team, x, wait):
        atomic_add(x, 0, 1)
        while wait and not stopping(team):
            pass

    x = np.zeros(1, np.int64)
    for size in (1, 5, 3):
        crew(size, work=10**9).run(count, x, False)
    if BUSY:
        team = crew(2, work=10**9)
        threading.Thread(target=team.run, args=(count, x, True), daemon=True).start()
        while x[0] < 11:
            time.sleep(0.001)
    print("fine", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("ending", ["pass", "os._exit(0)", "sys.exit(0)", "time.sleep(0.01)"])
def test_a_process_may_end_at_any_time(tmp_path, ending, busy):
    """Members sleep, look for work, or are inside a kernel when the interpreter goes down."""
    script = ENDING.replace("BUSY", str(busy)) + f"    {ending}\n"
    assert forked_script(tmp_path, script) == "fine"
