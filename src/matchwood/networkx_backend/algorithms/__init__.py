"""The functions that NetworkX hands over, one file a family; the names are NetworkX's own.

Each takes what `convert_from_nx` made of the graph and answers in NetworkX's words: sets and
dictionaries of the user's nodes, in the order in which NetworkX gives them.
"""
