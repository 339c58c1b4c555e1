"""The step with which all methods but Tarjan's and propagation begin: the largest component.

A vertex of high degree is likely in the largest component.  What it reaches, and what of that
reaches it, is one component (cpu.py, cpu_reach.py; on the GPU gpu.cu, which trims as well).
"""
