"""The host side of the GPU engine under threads and forks; what needs no GPU has a stand-in."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import solve_banded

import matchwood
from beyond_on_host import Array
from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.gpu.launch import STATIC_SHARED, Kernel
from support import run_script

FORK = """
    import os, sys, types
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    STAND_IN
    from matchwood import engines
    from matchwood.errors import EngineUnavailable

    if USED:
        engines.cupy()
    child = os.fork()
    if child == 0:
        try:
            engines.cupy()
            os._exit(0)
        except EngineUnavailable as error:
            os._exit(1 if "CUDA does not survive a fork" in str(error) else 2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    engines.cupy()  # the parent goes on
    print(code)
"""
STAND_IN = (
    "runtime = types.SimpleNamespace(getDeviceCount=lambda: 1); "
    "sys.modules['cupy'] = types.SimpleNamespace("
    "cuda=types.SimpleNamespace(runtime=runtime), ndarray=type('ndarray', (), {}))"
)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
@pytest.mark.parametrize("used", [True, False])
def test_a_child_of_a_process_that_uses_the_gpu_gets_a_clear_error(tmp_path, used):
    script = FORK.replace("STAND_IN", STAND_IN).replace("USED", str(used))
    assert run_script(tmp_path, script) == str(int(used))


@needs_fork
@pytest.mark.gpu
def test_a_real_child_gets_it_too(tmp_path):
    assert run_script(tmp_path, FORK.replace("STAND_IN", "").replace("USED", "True")) == "1"


def test_shared_memory_that_one_thread_needs_is_not_taken_away_by_another(monkeypatch):
    """A thread that saw the first limit and needs little must not lower what was raised since."""
    granted = []
    driver = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
        funcSetAttribute=lambda function, attribute, nbytes: granted.append(nbytes),
    )
    stand_in = SimpleNamespace(cuda=SimpleNamespace(driver=driver))
    monkeypatch.setattr(engines, "cupy", lambda: stand_in)
    kernel = Kernel("k", SimpleNamespace(ptr=0), ())
    for nbytes in (STATIC_SHARED + 4096, STATIC_SHARED + 1024, STATIC_SHARED + 8192):
        kernel._allow_shared(nbytes)
    assert granted == [STATIC_SHARED + 4096, STATIC_SHARED + 8192]


@pytest.mark.gpu
def test_threads_with_streams_of_their_own_get_the_same_answers():
    """Workspaces and status words of one stream must not be handed to another that is at work."""
    import cupy

    A = matchwood.generators.grid((300, 300))
    G = matchwood.graph(A).on("gpu")
    n = A.shape[0]
    d, off, b = (cupy.full(n, value) for value in (4.0, -1.0, 1.0))
    expected = matchwood.bfs(A, 0, engine="reference").level
    solution = solve_banded((1, 1), np.stack([array.get() for array in (off, d, off)]), b.get())
    problems = []

    def work():
        try:
            with cupy.cuda.Stream(non_blocking=True):
                for _ in range(20):
                    np.testing.assert_array_equal(matchwood.bfs(G, 0).level.get(), expected)
                    x = matchwood.tridiagonal.solve(off, d, off, b)
                    np.testing.assert_allclose(x.get(), solution, rtol=1e-12)
        except BaseException as error:
            problems.append(error)

    cupy.cuda.Device().synchronize()  # the arrays above are there for every stream
    everyone = [threading.Thread(target=work) for _ in range(4)]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join()
    assert problems == []


def test_a_flag_that_nobody_read_keeps_its_memory_until_the_copy_has_ended(monkeypatch):
    """Else CuPy hands the pinned memory to another array, and the copy writes there."""
    waited = []
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: waited.append(host()))
    cuda = SimpleNamespace(Event=lambda **options: event)
    fake = SimpleNamespace(cuda=cuda, zeros=lambda n, kind: np.zeros(n, kind).view(Array))
    monkeypatch.setattr(engines, "cupy", lambda: fake)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    flag = gpu.Flag()
    host = weakref.ref(flag._host)
    flag.fetch()
    del flag
    assert [memory is not None for memory in waited] == [True]
