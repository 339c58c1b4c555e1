"""Contraction by groups, on the GPU: the entries of a group are brought together and added up.

For integers, where no group has many entries and rows may come unsorted.  A vertex's entries go to
the places of its group, as labels.  Then the lanes of a warp, or a block with a hash table, have a
group and add up the entries with equal labels.  Nothing is sorted.
"""
