"""[0,n]-factors by rounds of proposals: Algorithm 2 of Klein and Strzodka (ICPP 2022).

In a round every vertex with c < n confirmed neighbours proposes to the n - c that it prefers, of
those that have room.  An edge that both ends propose is confirmed.  In most rounds each vertex has
a random charge, and proposes only to vertices of the other charge: that cuts the long chains in
which each vertex proposes to the next one and only the last is answered.  A round without charges
in which no vertex proposes shows that the factor is maximal.

CPU: cpu.py; ties by index have loops of their own for n = 1 to 4.  GPU: all rounds are one launch,
gpu.cu; what it does with a row is in proposals.cuh.  Graphs larger than a GPU: devices/.
"""
