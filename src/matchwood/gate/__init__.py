"""What the gate (graph.py) uses: the kinds of input, the errors, and what a Graph keeps."""
