"""What the gate (csr.py) takes: kinds of input, refusals, and what a Graph keeps."""
