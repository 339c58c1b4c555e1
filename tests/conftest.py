"""What all tests share: thread counts, engines with their reasons to skip, the data folder."""

from __future__ import annotations

import collections
import functools
import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings

from graphs import ZOO
from matchwood.engines.cpu import code
from matchwood.machine import kernels
from support import THREADS

settings.register_profile(
    "matchwood",
    deadline=None,  # the first example of a kernel waits for its compilation
    max_examples=40,
    derandomize=True,  # the same examples on every run; `--hypothesis-profile=explore` for new ones
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "explore", settings.get_profile("matchwood"), derandomize=False, max_examples=1000
)
settings.load_profile("matchwood")

# Before CuPy is imported: with CUB each of its sums, `any` and `all` compiles for three seconds
# where the plain ones compile for a fifth of one, and the tests meet seventy kinds of them.
os.environ.setdefault("CUPY_ACCELERATORS", "")

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"

FIRST = (
    "dist/test_algorithms_gpu.py",
    "test_kernels_compile.py",
    "tridiagonal/test_tridiagonal.py",
    "ordering/test_rcm.py",
    "adversarial/test_join.py",
    "adversarial/test_spoiled_answers.py",
    "teams/test_cache.py",
    "dist/test_components.py",
    "matching/test_proposal.py",
    "join/test_join_data.py",
    "ordering/test_refine_schedules.py",
    "communities/test_schedules.py",
)
"""Files that take long, or compile for long what other files need as well.

They start first: no worker is left alone with one of them, and no two compile the same.
"""

LAST = (
    "adversarial/test_wrong_arrays.py",
    "dist/test_answers_mpi.py",
    "dist/test_faults_mpi.py",
    "dist/test_graph_mpi.py",
    "adversarial/test_false_symmetry.py",
    "adversarial/test_faults.py",
    "dist/test_communicators_mpi.py",
)
"""Files that run kernels of all kinds in other processes, which then find them compiled."""


GPU_TESTS = re.compile(r"mark\.gpu|def test\w*\([^)]*\bengine\b")
"""What a file with tests for the GPU holds: the mark, or the fixture below that has it."""


def no_gpu() -> str | None:
    """Why GPU tests cannot run here; None when they can."""
    try:
        import cupy
    except ImportError as error:
        return f"CuPy is not installed: {error}"
    if not cupy.is_available():
        return "CuPy sees no GPU"
    return None


def no_mpi() -> str | None:
    """Why MPI tests cannot run here; None when they can."""
    try:
        import mpi4py  # noqa: F401
    except ImportError as error:
        return f"mpi4py is not installed: {error}"
    from dist.mpi import launcher

    return "there is no mpiexec" if launcher() is None else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--list-kernels", action="store_true", help="list all kernels that are met")


def pytest_configure() -> None:
    """Hear Ctrl-C: a shell starts background jobs, and so their children, with it ignored.

    Without the garbage collector until all tests are collected: what is made there stays.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m gpu``, files without a test for it are not even imported; most have none."""
    if config.option.markexpr != "gpu" or not collection_path.match("test_*.py"):
        return None
    return None if _holds_gpu_tests(collection_path) else True


@functools.cache
def _holds_gpu_tests(file: Path) -> bool:
    return GPU_TESTS.search(file.read_text("utf-8")) is not None


left_out: dict[str, int] = {}  # tests by the reason why they cannot run here


@pytest.hookimpl(trylast=True)  # when those that are not wanted have been left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files in order; leave out what cannot run here, with the reason.

    Where nothing else was asked for, it is skipped one by one: then something was collected.
    """
    turn = {TESTS / name: k for k, name in enumerate((*FIRST, None, *LAST)) if name}
    items.sort(key=lambda item: turn.get(item.path, len(FIRST)))
    for marker, why_not in (("gpu", no_gpu), ("mpi", no_mpi)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marker == "gpu":
            unseen = {item.path for item in marked if not _holds_gpu_tests(item.path)}
            assert not unseen, f"-m gpu would not see the tests of {unseen}"
        reason = why_not() if marked else None
        if reason is not None and len(marked) < len(items):
            left_out[reason] = len(marked)
            gone = set(marked)
            items[:] = [item for item in items if item not in gone]
            config.hook.pytest_deselected(items=marked)
        elif reason is not None:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Garbage is collected again, but not looked for among thousands of tests, which stay.

    A compilation makes many small objects, none of them garbage; so it is looked for less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # of the plugin with workers; each has collected the same
def pytest_testnodedown(node: Any) -> None:
    left_out.update(getattr(node, "workeroutput", {}).get("left out", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once for each reason how many tests were skipped for it."""
    reasons = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    reasons.update(left_out)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(params=THREADS, ids=lambda threads: f"{threads} threads")
def threads(request: pytest.FixtureRequest) -> int:
    """Team sizes: one, two, three, and more than there are cores."""
    return int(request.param)


@pytest.fixture(params=["reference", "cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine; "gpu" only where there is one."""
    return str(request.param)


@pytest.fixture(params=ZOO, ids=lambda name: name.replace(" ", "-"))
def zoo_graph(request: pytest.FixtureRequest) -> sp.csr_array:
    """Each graph of the zoo, freshly made."""
    return ZOO[request.param]()


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_listed(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is not in the list is not in the libraries: its users would wait for the compiler."""
    yield
    met = set(code.met)
    code.met.clear()
    listing = request.config.getoption("--list-kernels")
    if not listing and request.config.option.markexpr not in ("not slow", "gpu"):
        return  # slow tests and searches meet types that nobody else has
    if not listing:
        assert met <= kernels.listed(), "pytest --list-kernels adds these to the list"
        return
    import fcntl

    with open(TESTS / "conftest.py") as file:  # one worker after the other
        fcntl.flock(file, fcntl.LOCK_EX)
        kernels.write_list(kernels.listed() | met)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Real graphs and matrices: $MATCHWOOD_DATA, else ../shared/data; skips where absent."""
    folder = Path(os.environ.get("MATCHWOOD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; set MATCHWOOD_DATA")
    return folder
