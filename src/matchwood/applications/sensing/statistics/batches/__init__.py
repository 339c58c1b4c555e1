"""Statistics of more packets than fit into a device, or on several devices.

What is sorted on a device goes to the host and comes back in parts, in fewer bytes than it has
there: addresses with the same upper half lie together, so a table of where each upper half begins
stands for it.

Read on in gpu.py (the rounds), gpu_split.py (fewer bytes), gpu_flow.py (copies beside the work),
gpu_arena.py (memory of a device that is given out without asking the driver).
"""
