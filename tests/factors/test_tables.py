"""The script that prints the paper's tables runs, and small matrices come close to them already."""

from __future__ import annotations

import pytest

pytest.importorskip("bench.factors.tables", reason="the benchmarks are not beside the tests")

from bench.factors import tables


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    far = tables.main(["--side", "150", "--grid", "120"])
    printed = capsys.readouterr().out
    assert far <= 2  # c(5) without charges on equal weights shrinks with the size of the grid
    for word in ("Table 4", "Table 5", "aniso3", "five rounds"):
        assert word in printed
