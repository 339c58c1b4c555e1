"""[0,n]-factors by the greedy rule: Algorithm 1 of Klein and Strzodka (ICPP 2022).

The edges are taken by decreasing weight, each if both of its ends still have fewer than n
neighbours.  The answer is maximal.

CPU: the team sorts the edges, one thread takes them.  GPU: rounds of proposals without charges,
repeated until no vertex proposes, end with the same factor (rounds/).
"""
