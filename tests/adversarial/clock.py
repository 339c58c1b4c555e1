"""How long a search for faults goes on: some seconds by default, hours when asked for.

Where MATCHWOOD_ATTACK_LOG names a file, every search adds a line to it: how many draws it made, and
which test it was.  ``python tests/adversarial/clock.py FILE`` prints the sums.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def seconds(default: float) -> float:
    """The time a search may take: MATCHWOOD_ATTACK_SECONDS, or the default of the test."""
    return float(os.environ.get("MATCHWOOD_ATTACK_SECONDS", default))


def seed() -> int:
    """MATCHWOOD_ATTACK_SEED, where it is set; else 0, or another in each long search."""
    given = os.environ.get("MATCHWOOD_ATTACK_SEED")
    if given is not None:
        return int(given)
    return secrets.randbits(40) if "MATCHWOOD_ATTACK_SECONDS" in os.environ else 0


def attempts(default: float, *, draws: int = 1) -> Iterator[int]:
    """Count 0, 1, ... until the time is over.  The clock starts after 0, where kernels compile.

    `draws`: how many draws one attempt makes.
    """
    yield 0
    end = time.monotonic() + seconds(default)
    k = 1
    while time.monotonic() < end:
        yield k
        k += 1
    record(k * draws)


def record(draws: int) -> None:
    """Add to the log how many draws the test that runs has made."""
    log = os.environ.get("MATCHWOOD_ATTACK_LOG")
    if log is not None:
        test = os.environ.get("PYTEST_CURRENT_TEST", sys.argv[0]).partition(" (")[0]
        with open(log, "a", encoding="utf-8") as file:  # one short write: lines stay whole
            file.write(f"{draws} {test}\n")


def summary(log: Path) -> str:
    """Draws of each file of tests, and of all."""
    counts: Counter[str] = Counter()
    for line in log.read_text("utf-8").splitlines():
        draws, _, test = line.partition(" ")
        counts[Path(test.partition("::")[0]).name] += int(draws)
    lines = [f"{draws:12,d}  {name}" for name, draws in counts.most_common()]
    return "\n".join([*lines, f"{counts.total():12,d}  draws in all"])


if __name__ == "__main__":
    print(summary(Path(sys.argv[1])))
