"""The host side: sizes, errors, progress, several teams at once, forked and spawned children."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import matchwood
from forked import forked_script
from matchwood.engines.cpu import (
    advance,
    atomic_add,
    available_cpus,
    barrier,
    crew,
    default_threads,
    expect,
    fail,
    kernel,
    members,
    most_threads,
    next_chunk,
    share,
    stopping,
)
from matchwood.engines.cpu.cpus import _cgroup_quota
from matchwood.engines.cpu.crew import INLINE_WORK, SECOND_THREAD_WORK
from support import cores, run_script

LARGE = 10**9  # work that is surely worth a team


@kernel
def _sum(team, x, total):
    """Add up x, in chunks, and meet twice."""
    start = next_chunk(team, x.size, 64)
    while start >= 0:
        mine = 0
        for i in range(start, min(start + 64, x.size)):
            mine += x[i]
        atomic_add(total, 0, mine)
        start = next_chunk(team, x.size, 64)
    if barrier(team):
        return
    if team.me == 0:
        total[1] = total[0]
    if barrier(team):
        return


def team_sum(n, threads=None, work=LARGE):
    total = np.zeros(2, np.int64)
    crew(threads, work=work).run(_sum, np.arange(n), total)
    return int(total[1])


@kernel
def _wait(team, arrived):
    """Runs until it is stopped."""
    atomic_add(arrived, 0, 1)
    while not stopping(team):
        pass


# how many


@pytest.mark.parametrize("threads", range(1, 4 * cores() + 1))
def test_any_number_of_threads_gives_the_same(threads):
    assert team_sum(10_000, threads) == 10_000 * 9_999 // 2
    assert crew(threads, work=LARGE).size == threads
    assert crew(threads, work=0).size == threads  # asked for, so given


@pytest.mark.parametrize("work", [0, INLINE_WORK - 1, INLINE_WORK, SECOND_THREAD_WORK - 1])
def test_small_work_gets_one_member(work):
    assert crew(work=work).size == 1
    assert team_sum(1000, work=work) == 499_500


def test_large_work_gets_the_cpus_that_there_are(monkeypatch):
    monkeypatch.delenv("MATCHWOOD_NUM_THREADS", raising=False)
    assert crew(work=SECOND_THREAD_WORK).size == available_cpus() == default_threads()
    assert 1 <= available_cpus() <= (os.cpu_count() or 1)


def test_the_environment_sets_the_number(monkeypatch):
    monkeypatch.setenv("MATCHWOOD_NUM_THREADS", "3")
    assert default_threads() == 3
    assert crew(work=LARGE).size == 3
    assert crew(2, work=LARGE).size == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "", "+2", " 2", "1_0", "\u0663", "00"])
def test_a_bad_number_in_the_environment_is_an_error(monkeypatch, text):
    monkeypatch.setenv("MATCHWOOD_NUM_THREADS", text)
    with pytest.raises(ValueError, match="MATCHWOOD_NUM_THREADS must be a positive integer"):
        default_threads()


def test_bad_threads_are_errors():
    for threads in (0, -3):
        with pytest.raises(ValueError, match=f"crew: threads must be at least 1, got {threads}"):
            crew(threads, work=1)
    for threads in (True, np.True_, 2.0, "2", np.float64(2), np.array(2)):
        with pytest.raises(TypeError, match="threads must be an integer or None"):
            crew(threads, work=1)
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        assert crew(kind(2), work=LARGE).size == 2
    assert crew(most_threads(), work=LARGE).size == most_threads()


def test_too_many_threads_are_an_error_that_names_limit_and_function(monkeypatch):
    most = most_threads()
    assert most == max(64, 8 * available_cpus())
    A = matchwood.generators.path(9)
    before = set(threading.enumerate())
    for threads in (most + 1, 200_000, 2**31, 2**63, 10**30):
        expected = rf"threads must be at most {most} on this machine .*, got {threads}$"
        with pytest.raises(ValueError, match="^crew: " + expected):
            crew(threads, work=1)
        with pytest.raises(ValueError, match="^connected_components: " + expected):
            matchwood.connected_components(A, threads=threads)
        monkeypatch.setenv("MATCHWOOD_NUM_THREADS", str(threads))
        with pytest.raises(ValueError, match=f"MATCHWOOD_NUM_THREADS must be at most {most} on"):
            crew(work=LARGE)
    assert set(threading.enumerate()) <= before  # those of earlier tests may end meanwhile


@pytest.mark.parametrize("threads", [0, -1, 2.0, "2", True, None.__class__])
def test_bad_threads_name_the_function_that_was_called(threads):
    A = matchwood.generators.path(9)
    for function in (matchwood.bfs, matchwood.weighted_matching, matchwood.linear_forest):
        with pytest.raises((TypeError, ValueError), match=f"^{function.__name__}: threads must be"):
            function(A, *((0,) if function is matchwood.bfs else ()), threads=threads)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_is_respected():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)


def _cgroup(folder, membership, **files):
    """A made-up cgroup file system; keys are paths with __ for /."""
    (folder / "membership").write_text(membership)
    for name, text in files.items():
        path = folder / "root" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return _cgroup_quota(folder / "membership", folder / "root")


V2, V1 = "0::/a/b\n", "3:cpuset:/\n2:cpu,cpuacct:/a\n1:memory:/a\n"


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        (V2, {"a__b__cpu.max": "150000 100000\n"}, 1.5),
        (V2, {"a__b__cpu.max": "max 100000\n", "a__cpu.max": "50000 100000\n"}, 0.5),
        (V2, {"a__b__cpu.max": "400000 100000\n", "a__cpu.max": "200000 100000\n"}, 2.0),
        (V2, {"a__b__cpu.max": "max 100000\n"}, None),
        (V2, {"cpu.max": "300000 100000\n"}, 3.0),  # a container: our folder is not mounted
        (V2, {"a__b__cpu.max": "nonsense"}, None),
        (V2, {}, None),
        ("", {}, None),
        (V1, {"cpu__a__cpu.cfs_quota_us": "250000", "cpu__a__cpu.cfs_period_us": "100000"}, 2.5),
        (V1, {"cpu__a__cpu.cfs_quota_us": "-1", "cpu__a__cpu.cfs_period_us": "100000"}, None),
        (V1, {"cpu__cpu.cfs_quota_us": "100000", "cpu__cpu.cfs_period_us": "100000"}, 1.0),
    ],
)
def test_cgroup_quotas_are_found(tmp_path, membership, files, quota):
    assert _cgroup(tmp_path, membership, **files) == quota


def test_no_cgroups_is_no_quota(tmp_path):
    assert _cgroup_quota(tmp_path / "missing", tmp_path) is None


# errors


@kernel
def _fail(team, who, code, detail):
    if team.me == who or who < 0:
        fail(team, code, detail + team.me)
        return
    while not barrier(team):  # the others would wait here for ever
        pass


class _Unlucky(Exception):
    pass


@pytest.mark.parametrize("work", [0, LARGE])
def test_an_error_code_becomes_the_named_exception(threads, work):
    errors = {7: lambda detail: _Unlucky(f"vertex {detail}"), 8: ValueError}
    last = threads - 1
    with pytest.raises(_Unlucky, match=f"^vertex {5 + last}$"):
        crew(threads, work=work).run(_fail, last, 7, 5, errors=errors)
    assert team_sum(100, threads) == 4950


def test_of_several_failures_one_is_kept(threads):
    with pytest.raises(_Unlucky) as caught:
        crew(threads, work=LARGE).run(_fail, -1, 1, 100, errors={1: _Unlucky})
    assert 100 <= caught.value.args[0] < 100 + threads


def test_a_code_without_a_name_still_raises():
    for errors in (None, {1: ValueError}):
        with pytest.raises(RuntimeError, match="_fail failed with code 9, detail 4"):
            crew(1, work=LARGE).run(_fail, 0, 9, 4, errors=errors)


@kernel
def _raise(team):
    if team.me == 0:
        raise ValueError("from inside")
    while not barrier(team):
        pass


def test_an_exception_in_a_kernel_stops_the_others_and_arrives(threads):
    with pytest.raises(ValueError, match="from inside"):
        crew(threads, work=LARGE).run(_raise)
    assert team_sum(100, threads) == 4950


# progress


@kernel
def _work(team, steps):
    """Takes about `steps` ms (each step sums up a while), counting."""
    if team.me == 0:
        expect(team, steps)
    if barrier(team):
        return
    step = next_chunk(team, steps, 1)
    while step >= 0:
        x = 0.0
        for i in range(300_000):
            x += np.sqrt(i + x)
        if x >= 0:
            advance(team, 1)
        step = next_chunk(team, steps, 1)


@pytest.mark.slow
def test_progress_arrives_and_counts_up(threads):
    seen, steps = [], 200 * min(threads, cores())
    with matchwood.on_progress(lambda done, total: seen.append((done, total))):
        crew(threads, work=LARGE).run(_work, steps)
    assert len(seen) >= 2
    assert seen == sorted(seen)
    assert seen[-1] == (steps, steps)


@pytest.mark.slow
def test_progress_is_for_this_block_and_this_thread_only():
    seen = []
    with matchwood.on_progress(lambda done, total: seen.append(done)):
        other = threading.Thread(target=crew(2, work=LARGE).run, args=(_work, 300))
        other.start()
        other.join()
    crew(2, work=LARGE).run(_work, 10)
    assert seen == []


def test_a_callback_that_raises_ends_the_kernel(threads):
    def impatient(done, total):
        raise TimeoutError("long enough")

    start = time.perf_counter()
    arrived = np.zeros(1, np.int64)
    with matchwood.on_progress(impatient), pytest.raises(TimeoutError, match="long enough"):
        crew(threads, work=LARGE).run(_wait, arrived)
    assert time.perf_counter() - start < 30
    assert arrived[0] <= threads
    assert team_sum(100, threads) == 4950


@pytest.mark.slow
def test_a_callback_may_call_us():
    """The callback's own team must not take part in the one that is running."""
    seen = []

    def nested(done, total):
        if not seen:
            seen.append(team_sum(1000, 3))

    with matchwood.on_progress(nested):
        crew(2, work=LARGE).run(_work, 300)
    assert seen == [499_500]


# several at once


@kernel
def _many_rounds(team, counts, rounds):
    """Counts rounds; goes wrong if another team's members came to our barriers."""
    for _ in range(rounds):
        lo, hi = share(team, counts.size)
        for i in range(lo, hi):
            counts[i] += 1
        if barrier(team):
            return


def test_teams_from_several_python_threads_at_once():
    callers, size, rounds = 4, 3, 1000
    counts = np.zeros((callers, 50), np.int64)
    start = threading.Barrier(callers)
    problems = []

    def call(number):
        try:
            start.wait()
            for _ in range(3):
                crew(size, work=LARGE).run(_many_rounds, counts[number], rounds)
        except BaseException as error:
            problems.append(error)

    everyone = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join()
    assert problems == []
    assert (counts == 3 * rounds).all()


def test_an_error_in_one_team_leaves_the_other_alone():
    counts = np.zeros(50, np.int64)
    other = threading.Thread(target=crew(3, work=LARGE).run, args=(_many_rounds, counts, 2000))
    other.start()
    for _ in range(20):
        with pytest.raises(_Unlucky):
            crew(3, work=LARGE).run(_fail, 1, 1, 0, errors={1: _Unlucky})
    other.join()
    assert (counts == 2000).all()


def test_threads_are_kept_and_reused():
    team_sum(100, 5)
    before = set(_members())
    for _ in range(50):
        team_sum(100, 5)
    assert set(_members()) <= before  # some that an earlier test has retired may end meanwhile


def test_idle_threads_are_bounded():
    """Many teams at once need many threads; afterwards no more are kept than one team has."""
    callers, size = 4, most_threads() // 2 + 1
    everyone = [threading.Thread(target=team_sum, args=(100, size)) for _ in range(callers)]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join()
    end = time.monotonic() + 30
    while len(_members()) > most_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert len(_members()) <= most_threads()
    assert team_sum(100, 5) == 4950


def _members():
    return [thread for thread in threading.enumerate() if thread.name == "matchwood"]


@pytest.mark.parametrize("possible", [0, 1, 3])
def test_threads_that_cannot_be_started_are_a_clear_error(monkeypatch, possible):
    """As with a limit on processes: what was started ends, and the engine goes on."""
    monkeypatch.setattr(members, "_free", [])
    start, started = threading.Thread.start, []

    def limited(thread):
        if thread.name == "matchwood":
            if len(started) >= possible:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", limited)
        with pytest.raises(
            RuntimeError, match=r"4 threads are needed.*can't start new thread.*few"
        ):
            team_sum(100, 4)
        assert not any(thread.is_alive() for thread in started)
        started.clear()
        assert team_sum(100, 1) == 4950  # in the calling thread where there is no other
    assert team_sum(100, 4) == 4950
    for member in members._free:
        member.retire()


# children


KERNEL = """
    import os, sys, threading
    import numpy as np
    from matchwood.engines.cpu import atomic_add, barrier, crew, kernel, share, stopping

    @kernel
    def total(team, x, out):
        lo, hi = share(team, x.size)
        mine = 0
        for i in range(lo, hi):
            mine += x[i]
        atomic_add(out, 0, mine)
        if barrier(team):
            return

    @kernel
    def forever(team, arrived):
        atomic_add(arrived, 0, 1)
        while not stopping(team):
            pass

    def answer(threads=3):
        out = np.zeros(1, np.int64)
        crew(threads, work=10**9).run(total, np.arange(1000), out)
        return int(out[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "team running"])
def test_a_forked_child_can_call(tmp_path, busy):
    """Threads do not survive a fork; a child that counted on them would wait for ever."""
    script = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads: just what we try
    assert answer() == 499500
    if BUSY:
        arrived = np.zeros(1, np.int64)
        team = crew(2, work=10**9)
        threading.Thread(target=team.run, args=(forever, arrived), daemon=True).start()
        while arrived[0] < 2:
            pass
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0 if answer() == answer(1) == 499500 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert answer() == 499500
    print("fine")
    sys.stdout.flush()
    os._exit(0)
    """
    assert forked_script(tmp_path, KERNEL + script.replace("BUSY", str(busy))) == "fine"


MAKE = """
    import signal, time, warnings
    warnings.simplefilter("ignore", DeprecationWarning)

    def make(factor):
        \"\"\"A kernel that was not compiled before.\"\"\"
        space = {}
        text = TEXT.replace("FACTOR", str(factor))
        exec(text, globals(), space)
        return kernel(space["times"])

    TEXT = (
        "def times(team, x, out):\\n"
        " lo, hi = share(team, x.size)\\n"
        " for i in range(lo, hi):\\n"
        "  atomic_add(out, 0, FACTOR * x[i])\\n"
        " if barrier(team):\\n"
        "  return\\n"
    )

    def compiled(factor, threads=2):
        out = np.zeros(1, np.int64)
        crew(threads, work=10**9).run(make(factor), np.arange(1000), out)
        return int(out[0]) == factor * 499500

    def child_says(function):
        \"\"\"What the function returns in a forked child, which must not take long.\"\"\"
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            try:
                os.write(writer, str(function()).encode())
            except RuntimeError as error:
                os.write(writer, str(error).encode())
            os._exit(0)
        os.close(writer)
        assert os.waitpid(child, 0)[1] == 0
        with open(reader) as said:
            return said.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_others_compile_can_compile(tmp_path):
    """Numba's lock, held by a thread that the child does not have, would never be free."""
    script = """
    over = False
    def compile_on():
        factor = 10
        while not over:
            factor += 1
            assert compiled(factor)

    others = [threading.Thread(target=compile_on, daemon=True) for _ in range(2)]
    for other in others:
        other.start()
    for turn in range(4):
        time.sleep(0.05 * turn)
        assert child_says(lambda: compiled(3)) == "True"
    over = True
    for other in others:
        other.join()
    assert compiled(4)
    print("fine")
    """
    assert forked_script(tmp_path, KERNEL + MAKE + script) == "fine"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_in_a_long_compilation_knows_that_it_cannot_compile(tmp_path):
    script = """
    from numba.core.compiler_lock import global_compiler_lock
    import sys

    assert compiled(3) and answer() == 499500
    sys.modules["matchwood.engines.cpu.code"].FORK_SECONDS = 0.2
    begun, over = threading.Event(), threading.Event()
    def compile_long():
        with global_compiler_lock:
            begun.set()
            over.wait()
    other = threading.Thread(target=compile_long, daemon=True)
    other.start()
    begun.wait()
    said = child_says(lambda: compiled(4))
    assert "times cannot be compiled in this process, which was forked while" in said, said
    assert child_says(answer) == "499500"  # that was compiled before
    over.set()
    other.join()
    assert child_says(lambda: compiled(4)) == "True"
    assert compiled(5)
    print("fine")
    """
    assert forked_script(tmp_path, KERNEL + MAKE + script) == "fine"


@pytest.mark.slow
def test_a_spawned_child_can_call(tmp_path):
    script = """
    if __name__ == "__main__":
        import multiprocessing
        assert answer() == 499500
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(answer, [1, 2, 3]))
    """
    assert run_script(tmp_path, KERNEL + script) == "[499500, 499500, 499500]"


# Tasks in Python


def test_tasks_are_each_done_once():
    for threads in (1, 2, 3):
        for n in (0, 1, 2, 50):
            done = []
            crew(threads, work=LARGE).spread(done.append, n)
            assert sorted(done) == list(range(n))
    here = []
    crew(1, work=1).spread(lambda i: here.append(threading.current_thread()), 2)
    assert here == [threading.current_thread()] * 2  # too small to be handed over


def test_a_task_that_fails_stops_the_others():
    begun = []

    def task(i):
        begun.append(i)
        if i == 3:
            raise ValueError("the fourth")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="the fourth"):
        crew(2, work=LARGE).spread(task, 10_000)
    assert len(begun) < 5000


def test_ctrl_c_is_heard_between_tasks():
    begun = []

    def task(i):
        begun.append(i)
        if i == 20:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.002)

    with pytest.raises(KeyboardInterrupt):
        crew(2, work=LARGE).spread(task, 100_000)
    count = len(begun)
    time.sleep(0.05)
    assert len(begun) == count < 5000  # nobody works on
