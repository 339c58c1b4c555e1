"""The file formats, one module each:

    matrix_market.py    numbers by scipy.io, every line checked before
    edge_list.py        one edge a line, ids that are numbers or names
    dimacs.py           lines that start with a letter: .gr .max .col .co
    adjacency.py        one line a vertex (METIS, graph-txt) or a net (hMETIS)
    npz.py              what scipy.sparse.save_npz writes

Each reads a `Text` (npz: the bytes) into a matrix, and gives the bytes of a file as pieces.
dispatch.py chooses among them.
"""
