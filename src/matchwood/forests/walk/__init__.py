"""Linear forests by one walk, path by path, permuting on the way.  Sequential, on the CPU only.

The other methods are measured against it.  It is the quickest with one thread where paths run
along the numbering.
"""
