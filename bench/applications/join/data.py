"""The collections of the benchmarks, by default from a folder beside the clone."""

from __future__ import annotations

import os

from bench import harness
from bench.papers.mandulak.join_methods import (
    MAKERS,
    Data,
    cut,
    folder,
    read,
    sample,
    that_takes_part,
)

os.environ.setdefault("MATCHWOOD_DATA", str(harness.DATA))

__all__ = ["MAKERS", "Data", "cut", "folder", "read", "sample", "that_takes_part"]
