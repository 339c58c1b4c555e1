"""How a program finds its ranks.

launchers.py     what started this process
opening.py       `world`: the communicator of all processes
placement.py     host, CPUs, threads and GPU of a rank
description.py   `describe`: all of that in words
"""
