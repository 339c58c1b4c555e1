"""Building blocks that several problems share; same shape as a problem, on CPU and GPU.

    scan         exclusive_scan     where each row starts, from how long each row is
    sort         radix_sort         stable sort of 32- and 64-bit keys with a payload
                 sort_keys          the same keys without one
    compact      compact            positions or values that a mask keeps, in order
    frontier     queue, bitmap      the two forms of a set of vertices, and one into the other
    union_find   union_find         sets that grow together, by hooking with compare-and-swap
    hashing      mix64, hash2       64-bit mixers; quarter_md5, the random bit of a vertex
    row_reduce   reduce_rows        reduce over a row's neighbours with your own operation
    path_scan    path_scan          scans along paths known only by neighbours, both ways at once
    assemble     assemble           an edge list into sorted CSR
    contract     contract           groups of vertices made one, their entries added up
    number       number_roots       numbers for the roots of trees; for kernels
    edge_order   order_edges        the total order of weighted edges, without ties

For kernels only: `tally` (the weight of each label in a row) and `community_merge` (communities
that join a neighbour).  For the gate: `inspect`, `symmetrize` and `transpose`.

Each folder's page says more.  Import from the folder (``from matchwood.primitives.sort import
radix_sort``); nothing is re-exported here, since some folders have the name of their function.

Kernels of other folders call the device functions in ``frontier/cpu.py``, ``union_find/cpu.py``,
``hashing/cpu.py``, ``row_reduce/cpu.py`` and ``tally/cpu.py``; on the GPU, those in the ``.cuh`` of
that name.  ``engines/cpu/hints.py`` makes such kernels fast; ``matchwood.arguments`` checks arrays.
"""
