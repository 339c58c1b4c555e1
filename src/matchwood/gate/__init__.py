"""The gate: it takes whatever users call a graph, and returns checked arrays.

graph.py        `Graph`, and the function `graph`: read it first.  rectangles.py: any shape
rules.py        what entries mean: duplicates, directions, loops, signs; for ranks as well
entries.py      checked arrays, and views of them.  views.py: what a view is
holding.py      what a Graph keeps, and whose memory its arrays are
inputs.py       the kinds of input.  networkx/: graphs of NetworkX, read quickly
refusals.py     the errors
resources.py    memory and Ctrl-C.  plain_files.py: files that may change while they are read
distributed/    the same for graphs that are distributed over ranks
"""
