"""Verbs on sets: tables and files with a set in each row."""
