"""[0,n]-factors by rounds of proposals: Algorithm 2 of Klein and Strzodka (ICPP 2022).

The rule, and what charges are for: the notes of `degree_factor` (factors/__init__.py).

CPU: cpu.py; ties by index have loops of their own for n = 1 to 4.  GPU: all rounds are one launch,
gpu.cu; what it does with a row is in proposals.cuh.  Graphs larger than a GPU: devices/.
"""
