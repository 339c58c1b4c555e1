"""Is this the greedy matching?  The check is shared by the three greedy methods."""

from __future__ import annotations

from matchwood.matching.check import check_locally_dominant as check_locally_dominant
