"""Short augmentations make the greedy matching heavier.  Read on in reference.py, check.py, cpu.py.

A *unit* is an edge of the matching, or a free vertex.  An *arm* of a vertex u is an edge {u, x} not
in the matching; it gains its own weight and costs that of the edge at x.  An edge {u, v} of the
matching may be given up for an arm at u, an arm at v, or both; two free neighbours may be matched.
When no such exchange gains anything, the matching has at least 2/3 of the largest weight there is.

    unit u = v        arms u - x and v - y          x' and y' become free
       gain  =  w(u, x) - w(x, x')  +  w(v, y) - w(y, y')  -  w(u, v)
    where x and y are mates the path is a cycle, and w(x, y) is lost once

A round.  Every unit looks at the matching before the round and chooses its exchange of largest
gain.  It touches up to three units: its own and those of x and y.  Of the exchanges that touch a
unit the first one stays, by (gain, hash of the unit's smaller end); those that are first at all the
units they touch are made, all at once.  Rounds go on until no unit gains, or up to the number that
the caller asks for, LIMIT at most.

Gains are compared exactly.  Weights are multiplied by a power of two, so that the heaviest edge
lies between 2^59 and 2^60, and truncated to integers, which add up without an error.  Three terms
of a gain are subtracted, so a gain of LEAST_GAIN = 3 proves that the matching really becomes
heavier.  Truncation lowers the bound of 2/3 by less than 2^-57 of the heaviest edge per vertex.

    S. Pettie, P. Sanders. A simpler linear time 2/3 - epsilon approximation for maximum weight
        matching. Information Processing Letters 91, 2004. doi:10.1016/j.ipl.2004.05.007
    J. Maue, P. Sanders. Engineering algorithms for approximate weighted matching. WEA 2007.
        doi:10.1007/978-3-540-72845-0_19
"""

from __future__ import annotations

import math
from typing import Any

from matchwood.arguments import count

BITS = 60  # bits of the heaviest weight as an integer: two of them minus three fit into 64 bits
LEAST_GAIN = 3  # units of the last bit; truncation lowers each subtracted term by less than one
LIMIT = 100  # rounds; the real graphs we tried needed 2 to 11
STEP = 1000  # exponent: double precision holds 2^1000 and 2^-1000


def rounds_asked(caller: str, rounds: Any) -> int:
    """The argument `rounds`, checked: the most rounds to make."""
    return LIMIT if rounds is None else min(LIMIT, count(caller, "rounds", rounds, least=1))


def exponent_of(heaviest: float) -> int:
    """The exponent of the power of two that weights are multiplied by, before truncation."""
    return BITS - math.frexp(heaviest)[1]


def two_factors(heaviest: float) -> tuple[float, float]:
    """That power of two as two factors: one alone may be too large where weights are subnormal."""
    exponent = exponent_of(heaviest)
    first = min(exponent, STEP)
    return math.ldexp(1.0, first), math.ldexp(1.0, exponent - first)
