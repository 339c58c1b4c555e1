"""Fuzzy set-similarity join; its public names are those of matchwood/join.py.

The steps, one folder each: collecting (from text to numbers), candidates (which pairs may be
similar), similarity (of two elements), verification (of two records), top (the best pairs).
arrays.py is what they share.
"""
