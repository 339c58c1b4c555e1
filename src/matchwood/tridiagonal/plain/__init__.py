"""Engines for plain tridiagonal systems; block/ has those for systems of 2x2 blocks.

Read reference.py, then cpu.py with cpu_parts.py, then gpu.cu.
"""
