"""Network sensing; its public names are those of matchwood/sensing.py.

One folder a part: capture, anonymity, traffic, statistics, sliding, archive; stream puts them
together.
"""
