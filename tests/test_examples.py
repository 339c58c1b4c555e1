"""Every example script runs, and what the pages show is what happens."""

from __future__ import annotations

import doctest
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "examples").rglob("plot_*.py"))
SLOW = {"plot_backend", "plot_elasticity", "plot_elimination", "plot_multilevel", "plot_rcm"}
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.rst")
    if not {"_build", "generated", "auto_examples"} & set(path.parts)
)


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=pytest.mark.slow) if path.stem in SLOW else path for path in SCRIPTS],
    ids=lambda path: path.stem,
)
def test_example_runs(script: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    try:
        runpy.run_path(str(script))
        assert plt.get_fignums(), "an example has a picture"
    finally:
        plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_page_says_what_happens(page: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert failed == 0


def test_examples_are_there() -> None:
    assert len(SCRIPTS) >= 3
    assert len(PAGES) >= 10
