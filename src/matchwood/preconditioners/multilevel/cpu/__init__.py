"""The CPU engine: pairs.py and smoothed.py set levels up, cycles.py applies them."""

from matchwood.preconditioners.multilevel.cpu.pairs import largest, lines, measure, pair
from matchwood.preconditioners.multilevel.cpu.smoothed import coarse, interpolation

__all__ = ["coarse", "interpolation", "largest", "lines", "measure", "pair"]
