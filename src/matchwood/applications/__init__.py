"""Whole programs made of primitives and problems: joins of sets, and sensing of network traffic.

Nothing below knows them.
"""
