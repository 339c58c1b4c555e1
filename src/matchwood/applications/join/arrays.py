"""What every step of the join reads: records made of elements, elements made of tokens.

Both sides of a join share one dictionary, so equal elements have equal ids, and equal tokens too.
"""

from typing import NamedTuple

import numpy as np

ONE = 1 << 40  # the weight 1.  Similarities and matching weights are integers in units of 2^-40


class Records(NamedTuple):
    """The sets of one side, in the user's order."""

    starts: np.ndarray  # int64[n + 1]: record i has the elements starts[i] to starts[i + 1]
    elements: np.ndarray  # int32: distinct ids within a record, ascending by (token count, id)


class Elements(NamedTuple):
    """The distinct elements of both sides."""

    starts: np.ndarray  # int64[m + 1]: element e has the tokens starts[e] to starts[e + 1]
    tokens: np.ndarray  # int32, ascending within an element: a token's rank by (frequency, text)
    text_starts: np.ndarray  # int64[m + 1]; the edit similarities only, else one zero
    text: np.ndarray  # uint32: code points; the edit similarities only, else empty
