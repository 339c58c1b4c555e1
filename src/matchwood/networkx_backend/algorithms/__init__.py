"""The functions that NetworkX dispatches, one file a family; the names are NetworkX's own.

Each takes what `convert_from_nx` made of the graph and returns what NetworkX would: sets and
dictionaries of the user's nodes, in NetworkX's order.
"""
