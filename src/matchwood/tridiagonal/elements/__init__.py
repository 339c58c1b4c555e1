"""The ends of parts: what plain and block systems share on every engine.

Both cut a system into parts of consecutive rows.  Their first pass leaves an element of each part:
the equations between its first and its last unknown and those beside them.  This step joins the
elements, level by level, and goes back down.

In: the elements of all parts.  Out: the unknowns at the ends of the parts, from which the second
pass computes those between; and the first row whose unknown had no pivot.

Read on in cpu.py; gpu.py is the host side of ../elements.cuh, and runs both passes.
"""
