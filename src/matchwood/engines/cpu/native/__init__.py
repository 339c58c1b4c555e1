"""How the members of a team begin a kernel without the interpreter's lock.

Through Python each member in turn takes the lock, unpacks the arguments and lets the lock go.  On
a virtual machine of 16 cores each turn takes some 30 us, so the last of 16 members begins half a
millisecond late.  Here the calling thread unpacks the arguments once, and all members are woken
together: they wait in machine code.

    cpu_words.py   memory at an address, and the system's way to sleep and wake (Linux)
    cpu_posts.py   what members do at their posts, and the caller's side of it
    cpu_entry.py   from a kernel's signature to a record that a member can call
    cpu_trial.py   compiles these and tries them
    runs.py        what crew.py, members.py and compiling.py use of these

Where it is not possible (another system, a Python without the lock, a Numba with other internals)
nothing is `ready`, and teams begin through Python; the same holds for arguments that are no plain
numbers and arrays.
"""
