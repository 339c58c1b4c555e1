"""Scripts in processes of their own, forked from one that has imported Numba and made it compile.

A start of Python with NumPy and Numba takes more than a second, and then less than a tenth.  For
scripts that are started often, where it is no matter what was imported before matchwood.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from support import SOURCES, environment, run_script, write_script

PARENT = Path(__file__).with_name("forked_parent.py")


def forked_script(
    folder: Path, text: str, *arguments: str, sources: Path = SOURCES, **extra: str
) -> str:
    """As `run_script`: write a script into `folder`, run it, and return what it printed."""
    if not hasattr(os, "fork"):
        return run_script(folder, text, *arguments, sources=sources, **extra)
    assert not any(name.startswith("NUMBA") for name in extra), "Numba has read its variables"
    outputs = folder / "stdout", folder / "stderr"
    code = _ended(
        {
            "argv": [str(write_script(folder, text)), *arguments],
            "environment": environment(sources, **extra),
            "outputs": [str(path) for path in outputs],
        }
    )
    said, errors = (path.read_text() for path in outputs)
    assert code == 0, f"it ended with {code}\n{errors}"
    return said.strip()


def _ended(job: dict[str, object]) -> int:
    """The code with which the child of this job has ended; less than 0: minus the signal."""
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(job) + "\n")
    parent.stdin.flush()
    return int(parent.stdout.readline())


@functools.cache
def _parent() -> subprocess.Popen[str]:
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # only one thread goes through a fork
    variables.pop("PYTHONPATH", None)
    parent = subprocess.Popen(
        [sys.executable, "-P", str(PARENT)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(parent.communicate)  # it ends when there is no more to read
    return parent
