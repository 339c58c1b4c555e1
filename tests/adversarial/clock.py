"""How long a search for faults goes on: some seconds by default, hours when asked for."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator


def seconds(default: float) -> float:
    """The time a search may take: MATCHWOOD_ATTACK_SECONDS, or the default of the test."""
    return float(os.environ.get("MATCHWOOD_ATTACK_SECONDS", default))


def seed() -> int:
    """MATCHWOOD_ATTACK_SEED, where it is set; else 0, or another in each long search."""
    given = os.environ.get("MATCHWOOD_ATTACK_SEED")
    if given is not None:
        return int(given)
    return secrets.randbits(40) if "MATCHWOOD_ATTACK_SECONDS" in os.environ else 0


def attempts(default: float) -> Iterator[int]:
    """Count 0, 1, ... until the time is over.  The clock starts after 0, where kernels compile."""
    yield 0
    end = time.monotonic() + seconds(default)
    k = 1
    while time.monotonic() < end:
        yield k
        k += 1
