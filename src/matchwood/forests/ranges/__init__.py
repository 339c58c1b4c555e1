"""Linear forests by walks within ranges of vertices, one range for each thread.  CPU only.

Each thread walks the paths that lie within its own range, and the few that cross from one range to
another are left for one thread afterwards.  The quickest with two threads where paths run along the
numbering.
"""
