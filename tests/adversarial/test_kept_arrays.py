"""Nobody can break a graph or a result by arrays that he kept: those it was made of, or its own.

The attacks are in kept_arrays.py.  All functions once, then other graphs and numbers at random
until the time is over: some seconds, or MATCHWOOD_ATTACK_SECONDS.
"""

from __future__ import annotations

import time

import pytest

from adversarial.children import faults_of
from adversarial.clock import seconds, seed


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_arrays_that_are_kept_change_no_answer():
    end = time.time() + seconds(10)
    found = faults_of("kept_arrays.py", str(end), str(seed()))
    assert not found, "\n".join(found)
