"""Components on ranks with GPUs: gpu.py has the steps of forest.py, gpu_giant.py of giant.py."""
