"""Short augmentations make the greedy matching heavier.  Read on in reference.py, check.py, cpu.py.

A *unit* is an edge of the matching, or a free vertex.  An *arm* of a vertex u is an edge {u, x}
outside the matching; it wins its own weight and costs that of the edge at x.  An edge {u, v} of the
matching may be given up for an arm at u, an arm at v, or both; two free neighbours may be matched.
When no such exchange wins anything, the matching has at least 2/3 of the largest weight there is.

    unit u = v        arms u - x and v - y          x' and y' become free
       gain  =  w(u, x) - w(x, x')  +  w(v, y) - w(y, y')  -  w(u, v)
    where x and y are mates the path is a cycle, and w(x, y) is lost once

A round.  Every unit looks at the matching before the round and chooses its exchange of largest
gain.  It touches up to three units: its own and those of x and y.  Of the exchanges that touch a
unit the first one stays, by (gain, hash of the unit's smaller end); those that are first at all the
units they touch are made, all at once.  Rounds go on until nobody gains, or there were as many as
the caller wants, LIMIT at most.

Gains are compared exactly.  Weights are multiplied by a power of two, so that the heaviest edge
lies between 2^59 and 2^60, and what is behind the point is cut off.  Integers then add up without
an error.  Three terms of a gain are subtracted, so LEAST_GAIN = 3 of these units prove that the
matching really becomes heavier.  What is left out costs the promise of 2/3 less than 2^-57 of the
heaviest edge for each vertex.

    S. Pettie, P. Sanders. A simpler linear time 2/3 - epsilon approximation for maximum weight
        matching. Information Processing Letters 91, 2004. doi:10.1016/j.ipl.2004.05.007
    J. Maue, P. Sanders. Engineering algorithms for approximate weighted matching. WEA 2007.
        doi:10.1007/978-3-540-72845-0_19
"""

from __future__ import annotations

import math
from typing import Any

from matchwood.arguments import count

BITS = 60  # of the heaviest weight as an integer: two of them minus three fit into 64 bits
LEAST_GAIN = 3  # units of the last bit; each term that is subtracted was cut by less than one
LIMIT = 100  # rounds; the real graphs we tried needed 2 to 11
STEP = 1000  # a power of two that double precision holds, either way


def rounds_asked(caller: str, rounds: Any) -> int:
    """How many rounds there may be, for the argument of that name."""
    return LIMIT if rounds is None else min(LIMIT, count(caller, "rounds", rounds, least=1))


def exponent_of(heaviest: float) -> int:
    """Weights are multiplied by 2 to this power and cut."""
    return BITS - math.frexp(heaviest)[1]


def two_factors(heaviest: float) -> tuple[float, float]:
    """The same power as a product: one factor alone may be too large for subnormal weights."""
    exponent = exponent_of(heaviest)
    first = min(exponent, STEP)
    return math.ldexp(1.0, first), math.ldexp(1.0, exponent - first)
