"""Matchings of graphs that are spread over ranks: their check, in check.py and cpu.py.

How such a matching is found: matching/dominant/ranks.
"""
