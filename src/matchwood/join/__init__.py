"""Fuzzy set-similarity join: records whose elements can be matched well.

fuzzy_join        all pairs of similar records, or the best
iter_fuzzy_join   the same in blocks, for answers larger than memory
Pairs             what both return
collection        records read and tokenised once, for many joins
Collection        what `collection` returns
explain           which elements of two records match, and what the bounds say
Explanation       what `explain` returns

check_fuzzy_join  is any pair missing, false or wrongly scored?

The steps, one folder each: collecting (from text to numbers), candidates (which pairs may be
similar), similarity (of two elements), verification (of two records), top (the best pairs).
arrays.py is what they share.
"""

from matchwood.join.collecting import Collection, collection
from matchwood.join.explanation import Explanation, explain
from matchwood.join.fuzzy import fuzzy_join, iter_fuzzy_join
from matchwood.join.result import Pairs

__all__ = [
    "Collection",
    "Explanation",
    "Pairs",
    "collection",
    "explain",
    "fuzzy_join",
    "iter_fuzzy_join",
]
