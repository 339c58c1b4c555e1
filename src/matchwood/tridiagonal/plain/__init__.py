"""Engines for plain tridiagonal systems; ../block has those for systems of 2x2 blocks.

Read ../reference.py, then cpu/tiles.py (one part), cpu/__init__.py, then gpu.cu.
"""
