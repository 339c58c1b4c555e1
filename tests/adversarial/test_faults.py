"""Faults from outside, at moments that nobody chose: Ctrl-C, forks, no memory, no threads."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time

import pytest

from adversarial.clock import seconds
from support import in_time, run_script

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or not hasattr(os, "fork"), reason="no signals here"
)

INTERRUPTED = """
    import signal, sys, time
    import matchwood

    def call():
        return matchwood.connected_components(matchwood.generators.path(50)).count

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    begin, delay = time.perf_counter(), float(sys.argv[1])
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("whole", time.perf_counter() - begin)
    except KeyboardInterrupt:
        late = time.perf_counter() - begin - delay
        assert call() == 1
        print("interrupted", late)
"""


@pytest.mark.slow
def test_ctrl_c_in_the_first_import_leaves_everything_whole(tmp_path):
    """NumPy, SciPy and Numba are imported by the first call; the second must find them whole."""
    end = time.monotonic() + seconds(3)
    delays = [0.03, 0.1, 0.3, 0.5, 0.7]  # from NumPy to the middle of Numba
    seen = []
    while not seen or time.monotonic() < end:
        delay = delays[len(seen) % len(delays)] * (1 + len(seen) // len(delays) % 7 / 10)
        try:
            output = run_script(tmp_path, INTERRUPTED, str(delay), timeout=200)
            seen.append(output.split()[0])
        except subprocess.TimeoutExpired:
            seen.append("hangs")
    assert "interrupted" in seen
    assert "hangs" not in seen


WHO_IMPORTS = """
    import sys
    import matchwood

    names = []

    def look(frame, event, argument):
        code = frame.f_code
        if code.co_name == "_find_and_load_unlocked" and "importlib" in code.co_filename:
            names.append(frame.f_locals["name"])

    sys.settrace(look)  # in this thread alone, the one that Ctrl-C reaches
    A = matchwood.generators.path(50)
    matchwood.connected_components(A)
    matchwood.check.check_bfs(A, 0, matchwood.bfs(A, 0))
    matchwood.preconditioners.tridiagonal(matchwood.generators.aniso(1, (5, 5)))
    sys.settrace(None)
    print(*names)
"""


@pytest.mark.slow
def test_the_main_thread_imports_nothing_in_a_call(tmp_path):
    """Python may leave the lock of imports with a thread that is interrupted in one.

    Any other thread that imports something later, as those do that compile kernels, then waits for
    ever.  So all that a first call imports is imported by a thread that hears no Ctrl-C.
    """
    assert run_script(tmp_path, WHO_IMPORTS) == ""


@pytest.mark.slow
def test_ctrl_c_in_a_compilation_is_heard_at_once_and_the_code_is_there_next_time(tmp_path):
    """Compiled from nothing: the folder for compiled code is new."""

    def measure():
        with tempfile.TemporaryDirectory(dir=tmp_path) as empty:
            new = {"MATCHWOOD_CACHE_DIR": empty, "MATCHWOOD_KERNELS": "off"}
            said = run_script(tmp_path, INTERRUPTED, "1.5", **new)
        how, late = said.split()
        assert how == "interrupted"
        return float(late)

    in_time(measure, 1)  # LLVM alone took longer than that


NO_MEMORY = """
    import resource
    import threading
    import numpy as np
    import matchwood

    A = matchwood.generators.grid((300, 300))
    G = matchwood.graph(A)
    parts = A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data
    calls = {
        "bfs": lambda: matchwood.bfs(G, 0, threads=2),
        "connected_components": lambda: matchwood.connected_components(G, threads=2),
        "strongly_connected_components": lambda: matchwood.strongly_connected_components(G),
        "minimum_spanning_forest": lambda: matchwood.minimum_spanning_forest(G, threads=2),
        "graph": lambda: matchwood.graph(parts),
        "maximal_independent_set": lambda: matchwood.maximal_independent_set(A),
        "weighted_matching": lambda: matchwood.weighted_matching(A),
        "degree_factor": lambda: matchwood.degree_factor(A, 2),
        "reverse_cuthill_mckee": lambda: matchwood.reverse_cuthill_mckee(A),
    }
    for call in calls.values():
        call()
    before = threading.active_count()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    failed = 0
    for spare in (0, 100_000, 400_000, 1_000_000, 3_000_000):
        resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
        for name, call in calls.items():
            try:
                call()
            except matchwood.OutOfMemory as error:
                assert str(error).startswith(f"{name}: not enough memory: "), str(error)
                failed += 1
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        for call in calls.values():
            call()
    assert threading.active_count() <= before + 4
    assert failed
    print("fine", failed)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_no_memory_is_our_error_and_the_process_goes_on(tmp_path):
    # glibc keeps freed pages, and 64 MiB of addresses for each thread, where no limit is felt
    plain = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    output = run_script(tmp_path, NO_MEMORY, **plain)
    assert output.startswith("fine")


NO_THREADS = """
    import resource
    import sys
    import threading
    import numpy as np
    import matchwood

    A = matchwood.generators.grid((60, 60))
    expected = matchwood.connected_components(A, threads=1).count
    hold, threads = threading.Event(), []
    # thread stacks are memory: with hardly any left, none can be started
    matchwood.connected_components(A, threads=2)
    before = threading.active_count()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000, resource.RLIM_INFINITY))
    try:
        matchwood.connected_components(A, threads=40)
        print("enough")
    except (RuntimeError, MemoryError) as error:
        print(type(error).__name__, str(error)[:60])
        assert threading.active_count() <= before + 1, threading.enumerate()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert matchwood.connected_components(A, threads=40).count == expected
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_no_more_threads_is_a_clear_error_and_the_process_goes_on(tmp_path):
    output = run_script(tmp_path, NO_THREADS)
    assert output.startswith("RuntimeError connected_components: 40 threads are needed"), output


CTRL_C = """
    import signal, sys, time
    import numpy as np
    import matchwood

    def late(call, delay):
        \"\"\"Seconds from Ctrl-C to its error; None where the call had ended.\"\"\"
        begin = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            call()
            signal.setitimer(signal.ITIMER_REAL, 0)
            return None
        except KeyboardInterrupt:
            return time.perf_counter() - begin - delay

    def best(call, delay, limit):
        \"\"\"The same, the best of some: other programs may be at work for a while.\"\"\"
        found, end = late(call, delay), time.monotonic() + 40
        while found is not None and found >= limit and time.monotonic() < end:
            again = late(call, delay)
            found = None if again is None else min(found, again)
        return found

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    G = matchwood.graph(matchwood.generators.star(5_000_001))
    perm = np.random.default_rng(0).permutation(G.n).astype(np.int32)
    calls = {
        "permute": lambda: matchwood.permute(G, perm),
        "delaunay": lambda: matchwood.generators.delaunay(300_000),
    }
    matchwood.permute(matchwood.generators.star(9), np.arange(9))
    matchwood.generators.delaunay(100)
    for name, call in calls.items():
        begin = time.perf_counter()
        call()
        whole = time.perf_counter() - begin
        limit = 0.3 if name == "permute" else 0.5
        found = [best(call, whole * part, limit) for part in (0.1, 0.3, 0.5, 0.7)]
        print(name, limit, max((each for each in found if each is not None), default=-1))
"""


@pytest.mark.slow
def test_ctrl_c_is_heard_inside_a_long_row_and_in_a_triangulation(tmp_path):
    """A star is one row: looks between rows are none."""
    for line in run_script(tmp_path, CTRL_C).splitlines():
        _, limit, late = line.split()
        assert 0 <= float(late) < float(limit), line
