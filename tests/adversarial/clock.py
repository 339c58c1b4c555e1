"""How long a search for faults goes on: some seconds by default, hours when asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator


def seconds(default: float) -> float:
    """The time a search may take: MATCHWOOD_ATTACK_SECONDS, or the default of the test."""
    return float(os.environ.get("MATCHWOOD_ATTACK_SECONDS", default))


def attempts(default: float) -> Iterator[int]:
    """Count 0, 1, ... until the time is over; at least one attempt is made."""
    end = time.monotonic() + seconds(default)
    k = 0
    while k == 0 or time.monotonic() < end:
        yield k
        k += 1
