"""Components on ranks with GPUs.  gpu.py: the steps of forest.py; gpu_giant.py: those of giant.py."""
