"""Ranks: processes, or threads, that work on one graph and send each other what they found.

Read protocol.py first (what a rank may ask of the others), then threads/ and start/.  The public
names are those of matchwood/dist.py.
"""
