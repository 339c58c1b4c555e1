"""No array, however wrong, crashes a public function or makes it read what is not its own.

The attacks are in wrong_arrays.py, the calls they spoil in public_calls.py.  Worst first: lengths
and numbers, then types, then the same numbers in other forms, then several arrays and numbers of a
call at random, until the time is over: some seconds, or MATCHWOOD_ATTACK_SECONDS.
MATCHWOOD_ATTACK_SEED=7 (any but 0) begins with the random ones, which are others for each seed.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

from adversarial.children import faults_of
from adversarial.clock import seconds
from adversarial.public_calls import NO_ARRAYS, VERIFIED, table
from test_house_public import PUBLIC


def test_every_public_function_is_attacked():
    """A function that is new must be given a call in public_calls.py."""
    of_modules = {name for name in table() if name.startswith("matchwood.block_tridiagonal.")}
    assert set(PUBLIC) - NO_ARRAYS == set(table()) - of_modules
    assert not NO_ARRAYS - set(PUBLIC)
    assert {f"matchwood.{name}" for name in VERIFIED} <= set(table())


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_wrong_arrays_get_an_error_or_a_right_answer():
    end = time.time() + seconds(20)
    found = faults_of("wrong_arrays.py", str(end), os.environ.get("MATCHWOOD_ATTACK_SEED", "0"))
    assert not found, "\n".join(found)


CRASHES = """
import ctypes, sys
import numpy as np
from adversarial.children import make
from adversarial.guard_pages import room

def die():
    ctypes.string_at(0)

def step_outside():
    array = room(5, np.int64)
    ctypes.string_at(array.ctypes.data + array.nbytes, 1)

def step_before():
    array = room(5, np.int64, at_end=False)
    ctypes.string_at(array.ctypes.data - 1, 1)

attacks = [("well", lambda: ""), ("die", die), ("outside", step_outside), ("before", step_before),
           ("wrong", lambda: "this is wrong"), ("well again", lambda: "")]
make(attacks, int(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="guarded memory is for Linux")
def test_crashes_are_seen_and_named(tmp_path):
    """The test above must be able to fail."""
    script = tmp_path / "crashes.py"
    script.write_text(CRASHES)
    found = faults_of(str(script))
    assert [fault.split(":")[0] for fault in found] == ["2 die", "3 outside", "4 before", "5 wrong"]
    assert all("died with -11" in fault for fault in found[:3])
    assert "this is wrong" in found[3]
