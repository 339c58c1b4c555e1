"""
A join over ranks
=================

The first rank reads the records and makes their tokens, every rank joins one shard of balanced
cost, and the parts are put together.  Started alone it has one rank; nothing else changes::

    mpiexec -n 4 python examples/join/shards.py sets.txt pairs.npz
"""

import sys

import numpy as np

import matchwood

with matchwood.dist.world() as comm:
    records = None
    if comm.rank == 0:
        with open(sys.argv[1], encoding="utf-8") as file:
            records = matchwood.collection(file.read().splitlines(), separator=";")
    part = matchwood.fuzzy_join(records, delta=0.7, comm=comm, threads=1)
    parts = comm.objects(tuple(part))
    if comm.rank == 0:
        left, right, score = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.lexsort((right, left))
        left, right, score = left[order], right[order], score[order]
        print(f"{left.size} pairs from {comm.size} parts: {[len(p[0]) for p in parts]}")
        if len(sys.argv) > 2:
            np.savez(sys.argv[2], left=left, right=right, score=score)
