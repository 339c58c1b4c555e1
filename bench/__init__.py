"""Benchmarks: ours and every installed peer on the same graph in the same process.

One folder a family, as in src/matchwood, with one file a problem, and the GPU's in a file of its
own; run as ``python -m bench.<family>.<problem>``.  Besides:

    run.py compare.py    all benchmarks (`make bench`); two of its results side by side
    full_size.py         one graph that fills a GPU, all problems
    harness/             what benchmarks use: graphs, timing, peers, times of the GPU
    engines/             cpu: teams of threads; gpu; devices: graphs larger than a GPU; ranks
    applications/        join and sensing
    papers/              tables and figures of papers and theses, made again: a folder for each
"""
