"""Ranks that are threads of one process: hall.py (where they meet), communicator.py, running.py.

A collective is a meeting: each rank brings something, waits until all have come, and then reads
what the others brought, where it lies.  Arrays are never pickled.  A large array is not copied
either: its owner stays until all have read it (a second meeting).  A small one is copied, which
costs less than to wait again.
"""
