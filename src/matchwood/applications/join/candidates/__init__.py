"""Which pairs of records may be similar?  From an index of tokens, with bounds on what they weigh.

In: both sides as numbers (`Prepared` of ../collecting) and a threshold.  Out: pairs that reach it,
in no order (`Raw`).  A candidate that no filter could refuse is verified (../verification) as soon
as it is found, so candidates are never stored.

    index      tokens of whole records with their utilities; where each token occurs
    gather     the records that share a token of the prefix, with a bound on the matching
    settle     equal elements, nearest neighbours and small rests decide most candidates at once
    refine     the token lists of both records, merged until the bound fails

cpu/index.py makes the lists and the index, cpu/__init__.py probes it; the GPU's kernel is in
../gpu.cu, and reads the same lists.
"""

FILTERS = ("basic", "positional", "joint")  # by their level; the pairs are the same
