"""Fuzzy set-similarity join: records whose elements can be matched well.

fuzzy_join        all pairs of similar records, or the best
iter_fuzzy_join   the same in blocks, for answers larger than memory
Pairs             what both return
collection        records read and tokenised once, for many joins
Collection        what `collection` returns
explain           which elements of two records match, and what the bounds say
Explanation       what `explain` returns

check_fuzzy_join  is any pair missing, false or wrongly scored?

Implementation: applications/join.
"""

from matchwood.applications.join.collecting import Collection, collection
from matchwood.applications.join.fuzzy import fuzzy_join, iter_fuzzy_join
from matchwood.applications.join.result import Pairs
from matchwood.applications.join.verification.check import Explanation, explain

__all__ = [
    "Collection",
    "Explanation",
    "Pairs",
    "collection",
    "explain",
    "fuzzy_join",
    "iter_fuzzy_join",
]
