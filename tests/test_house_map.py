"""The maps of the house, in CONTRIBUTING.md and docs/architecture.rst, show what is there."""

from __future__ import annotations

import re
from pathlib import Path

from house import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
MAPS = ("CONTRIBUTING.md", "docs/architecture.rst")
UNLISTED = {"_version.py", "py.typed", "__pycache__"}


def tree_in(page: str) -> str:
    """The lines below ``src/matchwood/``, up to those of the tests."""
    text = (ROOT / page).read_text()
    return text[text.index("src/matchwood/\n") : text.index("tests/ ")]


def test_every_part_is_on_the_maps() -> None:
    parts = {path.name for path in PACKAGE.iterdir() if path.suffix != ".pyi"} - UNLISTED
    for page in MAPS:
        named = {name.rstrip("/") for name in re.findall(r"(\w+(?:\.py|/))", tree_in(page))}
        missing = {part for part in parts if part not in named}
        assert not missing, page
        stale = {name for name in named if not (PACKAGE / name).exists()} - {"src", "matchwood"}
        assert stale <= {"device", "distributed", "graph.py"}, page  # inside gate and engines


def test_paths_in_the_reading_order_exist() -> None:
    """And each is a file: a stranger opens nothing else."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    order = text[text.index("### Reading order") : text.index("## To add a problem")]
    paths = re.findall(r"`([\w/]+\.(?:py|cuh?|md))`", order)
    assert len(paths) > 30
    for path in paths:
        homes = (ROOT, PACKAGE)
        assert any((home / path).is_file() for home in homes), path
