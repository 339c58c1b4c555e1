"""Imports Numba, before any other file here does, such that Ctrl-C does not leave half of it."""

from matchwood._lazy import import_whole

import_whole("numba")
