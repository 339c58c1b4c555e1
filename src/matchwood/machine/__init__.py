"""This machine: what is here (config.py), and compiling every kernel beforehand (kernels.py).

Both are public: `matchwood.show_config` and `matchwood.warmup`.
"""
