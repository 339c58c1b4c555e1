"""Verbs about this machine: what is here, how fast it is, and a demonstration."""
