"""Every example script runs, and what the pages show is what happens."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

from support import some

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "examples").rglob("plot_*.py"))
SLOW = [
    path
    for path in SCRIPTS
    if re.search("backend|elasticity|elimination|multilevel|rcm|maximal|connected", path.stem)
]
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.rst")
    if not {"_build", "generated", "auto_examples"} & set(path.parts)
)


@pytest.mark.parametrize("script", some(SCRIPTS, SLOW), ids=lambda path: path.stem)
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
