"""Joins of real collections, for `matchwood bench join`."""
