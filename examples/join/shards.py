"""
A join over MPI ranks
=====================

Each rank takes one shard, and the parts are put together.  A shard is one of p parts of balanced
cost; nothing else has to be agreed on::

    mpiexec -n 4 python examples/join/shards.py sets.txt pairs.npz
"""

import sys

import numpy as np
from mpi4py import MPI

import matchwood

world = MPI.COMM_WORLD
with open(sys.argv[1], encoding="utf-8") as file:
    records = matchwood.collection(file.read().splitlines(), separator=";")
part = matchwood.fuzzy_join(records, delta=0.7, shard=(world.rank, world.size), threads=1)
parts = world.gather(tuple(part))
if world.rank == 0:
    left, right, score = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((right, left))
    left, right, score = left[order], right[order], score[order]
    print(f"{left.size} pairs from {world.size} parts: {[len(p[0]) for p in parts]}")
    if len(sys.argv) > 2:
        np.savez(sys.argv[2], left=left, right=right, score=score)
