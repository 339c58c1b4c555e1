"""Verbs for network traffic."""
