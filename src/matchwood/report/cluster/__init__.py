"""Times of graphs that are spread over ranks, and what the ranks talk by.

links.py       latency and bandwidth between ranks
measuring.py   a call on all ranks: its time, the part of it in collectives, bytes and messages
figures.py     the experiments of the thesis' chapter 6, each a list of rows
"""
