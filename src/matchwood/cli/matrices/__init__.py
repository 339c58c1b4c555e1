"""Verbs for matrices: orders and linear systems."""
