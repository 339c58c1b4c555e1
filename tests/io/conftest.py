"""Files that end in .zst need an optional package; without it their tests are skipped."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def zst_needs_its_package(request: pytest.FixtureRequest) -> None:
    case = getattr(request.node, "callspec", None)
    values = [] if case is None else case.params.values()
    if any(isinstance(value, str) and value.endswith(".zst") for value in values):
        pytest.importorskip("zstandard")
