"""Maximal matching by random proposals.

Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu.

A round colours the free vertices blue or red at random.  Every blue vertex proposes to a red free
neighbour, every red one accepts one proposal.  The exact rule is in the notes of `maximal_matching`
(matching/maximal.py): Fagginger Auer and Bisseling, algorithm 3.

The same files hold their algorithm 1, ``method="serial"``: vertices one by one in random order.  It
makes the same choices, without colours.
"""
