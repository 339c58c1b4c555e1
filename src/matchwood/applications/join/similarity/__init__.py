"""How alike two elements are: an integer in units of 2^-40, the same on every engine.

    jaccard   tokens in common / tokens of both together
    edit      1 - Levenshtein distance / length of the longer one
    equal     1 where the elements are the same, else 0

A similarity c/u is kept as the integer floor((2^41 c + u) / 2u), which is c/u in units of 2^-40,
rounded.  Sums of integers do not depend on their order, so matching weights, scores and the set
of pairs have the same bits whatever engine or number of threads found them.

In: the ids of two elements, whose tokens or texts lie in `Elements`.  Out: such an integer.

Read on in reference.py (the definitions in plain Python), check.py (by another way) and cpu.py.
Which text is compared, with or without padding, is decided where elements are made: `edit` and
`edit_padded` are the same function of other texts.
"""

SIMILARITIES = ("jaccard", "edit", "edit_padded", "equal")
EDITS = ("edit", "edit_padded")
