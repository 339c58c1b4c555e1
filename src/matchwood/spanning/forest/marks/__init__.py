"""The step with which all methods end: edges and weights from the marked entries.

A method marks the entries of its forest in a bitmap, in any order.  Read in the order of entries
they are sorted by their ends, whatever the method, the engine and the number of threads.
"""
