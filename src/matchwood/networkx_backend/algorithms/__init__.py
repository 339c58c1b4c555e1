"""The functions that NetworkX hands over, by family."""
