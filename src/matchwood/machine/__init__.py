"""This machine: what is here (config.py), and compiling beforehand (warm.py)."""
