"""Benchmarks: ours and every installed peer on the same graph in the same process.

One file a problem, run as ``python -m bench.<family>.<problem>``; `bench.run` runs them all.
"""
