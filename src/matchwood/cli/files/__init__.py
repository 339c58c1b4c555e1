"""Verbs for graphs in and out: files and generators."""
