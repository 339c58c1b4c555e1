"""Locally dominant matching of graphs larger than a device, and on several devices.

LD-GPU (M. Mandulak, S. Ghosh, S. M. Ferdous, M. Halappanavar, G. Slota. Efficient weighted graph
matching on GPUs. SC 2024. doi:10.1109/SC41406.2024.00068) sends all rows to the devices in every
round, in batches, and exchanges two arrays of n words.  Here the rows travel once.  While they
pass, the first k edges of each are packed into a list, in the order of primitives/edge_order.  A
vertex whose pointer became invalid takes the next free one of its list.  Only when its list has run
out does its row travel again; the new list has free neighbours alone.

On one device vertices are matched while the rows pass, as soon as the rows of both have passed.
So rows that pass later have fewer free neighbours, and fewer lists run out.  The mates are the
same: whoever is matched so would be in a later round.

Each device has the pointers of all vertices and the lists of its own.  After a round the devices
tell each other which pointers have changed; who is matched with whom follows from them on each
device.

Read on in rounds.py (the rounds), cpu.py (the steps, on simulated devices), gpu.py and gpu.cu (the
steps on CUDA's devices).
"""

from __future__ import annotations

from matchwood.matching.dominant.devices.rounds import match

__all__ = ["match"]
