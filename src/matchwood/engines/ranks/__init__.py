"""Ranks: processes, or threads, that work on one graph and send each other what they found.

    protocol.py    what a rank may ask of the others: `Communicator`.  Read it first
    threads.py     ranks that are threads of one process, for trying and testing
    networks/      ranks that are processes: MPI, NCCL, CUDA IPC, torch.distributed, shared memory
    opening.py     `world`: the communicator of all processes.  placement.py, description.py
    agreement.py   equal arguments and equal errors on all ranks.  faults.py: what failed, in words
    grid/          which rank owns which vertex.  exchanges/: values of vertices between ranks
    vectors.py     values of all vertices, of which each rank has its own

The public names are those of matchwood/dist.py.
"""
