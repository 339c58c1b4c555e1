"""Graphs of ranks that share a GPU, whole on the first rank: first.py.  Joining blocks: gpu.py."""

from matchwood.gate.blocks.whole.first import Whole, gathered

__all__ = ["Whole", "gathered"]
