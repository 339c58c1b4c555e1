"""Verbs for the problems of graphs."""
