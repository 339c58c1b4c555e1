"""Is this the greedy matching?  The check of the family decides."""

from __future__ import annotations

from matchwood.matching.check import check_locally_dominant as check_locally_dominant
