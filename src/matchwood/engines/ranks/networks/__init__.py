"""Communicators of several processes: MPI, NCCL, CUDA IPC, a group of torch.distributed.

Read protocol.py first, then

    polled.py        how a rank waits and still reacts to errors of others, Ctrl-C and timeouts;
                     the notices that ranks send each other besides their data
    mpi.py           MPI by mpi4py
    shared/          beside MPI: arrays of ranks on one host go through memory that they share
    torch_group.py   a group of torch.distributed
    nccl.py ipc.py   arrays on GPUs, beside one of the two above; device.py: what both share
    staging.py       arrays on GPUs through the host's memory
"""
