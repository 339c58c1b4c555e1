"""Which pairs of records may be similar?  From an index of tokens, with bounds on what they weigh.

In: both sides as numbers (`Prepared` of ../collecting) and a threshold.  Out: for a left record all
right ones that may reach the threshold, each with an upper bound of the matching.

    lists      tokens of whole records with their utilities
    index      where each token occurs, in the prefixes of the right records
    gather     the records that share a token of the prefix, with a bound on the matching
    refine     the token lists of both records, merged until the bound fails (`can_reach`)

cpu.py has all of them; the GPU's kernels in ../gpu.cu read the same lists and index.
"""

FILTERS = ("basic", "positional", "joint")  # by their level; the pairs are the same
