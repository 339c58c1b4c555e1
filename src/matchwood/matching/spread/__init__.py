"""Matchings of graphs that are spread over ranks: their check.  Read checking.py, then cpu_checks.py.

How such a matching is found: matching/dominant/dist.py.
"""
