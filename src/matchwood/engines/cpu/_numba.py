"""Imports Numba before any other file here does, so that Ctrl-C cannot leave it half imported."""

from matchwood._lazy import import_whole

import_whole("numba")
