"""Start a script under mpiexec: ``mpiexec(4, "import matchwood ...")`` or ``mpiexec(4, path)``.

A script prints with ``from dist.mpi import say``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import SOURCES, environment

RARE = [pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 2, 3, 6, 9)]
RANKS = [4, *RARE]  # of tests that compare whole answers

TESTS = Path(__file__).resolve().parent.parent
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # version 4
    "OMPI_MCA_hwloc_base_binding_policy": "none",  # else all programs of 1 or 2 ranks share a core
    "OMPI_MCA_plm_rsh_agent": "false",  # which looks for ssh even if all ranks are here
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
"""Open MPI wants to be told that there may be more ranks than cores, and containers with root.

Tests that start it at the same time would all be bound to the first cores."""

SHARES = hasattr(os, "memfd_create")  # ranks of one host share memory
LAUNCHERS = ("PMI_", "OMPI_", "SLURM_", "HYDI_", "MPI_", "PMIX_")  # of whoever started the tests


def launcher() -> str | None:
    """The mpiexec beside this Python, which belongs to its mpi4py, else that of the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpi = pytest.mark.mpi
"""``pytestmark = needs_mpi`` in a file whose tests all start mpiexec; conftest.py skips them."""


def say(*words: object) -> None:
    """Print in one piece, for scripts: what `print` writes is mixed with that of other ranks."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def by_messages(comm: Any) -> Any:
    """The communicator of MPI beside that of ranks which share memory; its splits are MPI's too."""
    comm.session.hosts = ()
    return getattr(comm, "base", comm)


@dataclass
class Done:
    """How a program under mpiexec ended."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def lines(self) -> list[str]:
        """What the ranks printed, sorted: they print in any order."""
        return sorted(self.stdout.splitlines())


def command(ranks: int, script: Path, *arguments: str) -> list[str]:
    return [str(launcher()), "-n", str(ranks), sys.executable, str(script), *arguments]


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of a program that mpiexec starts: nothing of another launcher."""
    paths = f"{SOURCES}{os.pathsep}{TESTS}{os.pathsep}{TESTS.parent}"
    kept = {k: v for k, v in environment().items() if not k.startswith(LAUNCHERS)}
    return {**kept, **OPEN_MPI, "PYTHONPATH": paths, "MATCHWOOD_DIST_TIMEOUT": "200", **extra}


def mpiexec(
    ranks: int,
    script: Path | str,
    *arguments: str,
    timeout: float = 240,
    check: bool = True,
    **extra: str,
) -> Done:
    """Run a script, a path or its text, on so many ranks; fails if it failed, unless told not to.

    `extra` are environment variables.  Mark the test ``mpi``: it is skipped where MPI is missing.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = script
        if isinstance(script, str):
            path = Path(folder) / "script.py"
            path.write_text(textwrap.dedent(script))
        start = time.monotonic()
        process = subprocess.Popen(
            command(ranks, Path(path), *arguments),
            env=clean_environment(**extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that no process is left when the time is over
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"mpiexec did not end within {timeout} s\n{out}\n{err}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        done = Done(process.returncode, out, err, time.monotonic() - start)
    if check:
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
