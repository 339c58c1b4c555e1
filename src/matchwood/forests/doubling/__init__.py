"""Linear forests by scans along all paths: pointer doubling, as in section 3.3 of the paper.

Every vertex knows who is 1, 2, 4, ... steps away on both sides, until all have reached an end.
Three scans: two with `minimum` find the weakest edge of each cycle, one with `add` the positions.

Both engines run the same array operations, scans.py; what differs is `path_scan` of the primitives.
"""
