"""Attacks are made in a process of their own, so that one which kills it is seen and named.

A child prints "try K WHAT" before an attack, "bad WHY" after one that went wrong and "done K" at
its end.  When it dies or hangs, the attack it was at is named, and another child goes on behind it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from adversarial.clock import record

HERE = Path(__file__).resolve().parent
DEATHS = 20  # children that may die before we give up
HANG_SECONDS = 180.0  # one attack, on a busy machine; five times that with every index checked


def faults_of(script: str, *arguments: str, **variables: str) -> list[str]:
    """What went wrong while `script` made its attacks: a line for each."""
    from support import SOURCES

    folders = (SOURCES, HERE.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), **variables}
    found: list[str] = []
    first = 0
    for _ in range(DEATHS):
        with tempfile.TemporaryFile("w+") as errors:
            done = subprocess.run(
                [sys.executable, str(HERE / script), str(first), *arguments],
                env=env, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
            errors.seek(0)
            last_words = " ".join(errors.read()[-1000:].split())
        lines = done.stdout.splitlines()
        attack = "try 0 the start"
        for line in lines:
            if line.startswith("try "):
                attack = line
            elif line.startswith("bad "):
                found.append(f"{attack[4:]}: {line[4:]}")
        if lines and lines[-1].startswith("done "):
            record(int(lines[-1][5:]))
            return found
        found.append(f"{attack[4:]}: the process died with {done.returncode}, {last_words}")
        if int(attack.split()[1]) <= first:
            break
        first = int(attack.split()[1])
    return found


def make(
    attacks: Iterable[tuple[str, Callable[[], str]]], first: int, hang: float = HANG_SECONDS
) -> None:
    """In the child: make the attacks behind the first ones, and print how they went."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    seconds = hang * (5 if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else 1)
    k, armed = 0, -math.inf
    with contextlib.redirect_stdout(io.StringIO()):
        for what, attack in attacks:
            k += 1
            if k <= first:
                continue
            report.write(f"try {k} {what}\n")
            if time.monotonic() > armed + 1:  # it starts a thread, so not at each attack
                armed = time.monotonic()
                faulthandler.dump_traceback_later(seconds, exit=True)
            why = attack()
            if why:
                report.write("bad " + " ".join(why.split())[:400] + "\n")
    faulthandler.cancel_dump_traceback_later()
    report.write(f"done {k}\n")


def unexpected(error: Exception) -> str:
    """Why this is no answer to a wrong input; "" when it is one."""
    import numpy as np

    from matchwood import EngineUnavailable, OutOfMemory

    if isinstance(error, (EngineUnavailable, OutOfMemory, np.linalg.LinAlgError)):
        return ""
    if type(error).__name__ in (
        "TypeError",
        "ValueError",
        "CheckFailed",
        "FileFormatError",
        "OverflowError",
    ):
        return ""
    return f"{type(error).__name__}: {error}"


Attack = tuple[str, Callable[[], str]]
__all__ = ["Attack", "faults_of", "make", "unexpected"]
