"""Fuzzy set-similarity join."""
