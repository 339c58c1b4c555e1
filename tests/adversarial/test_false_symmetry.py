"""No kernel leaves its arrays or runs for ever where a pattern is wrongly taken for symmetric."""

from __future__ import annotations

import pytest

from adversarial.children import faults_of
from adversarial.clock import seconds


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_kernels_stay_inside_their_arrays():
    found = faults_of("false_symmetry.py", str(seconds(5)))
    assert not found, "\n".join(found)
