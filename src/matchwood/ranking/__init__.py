"""Which vertices matter most.

pagerank        where a random surfer spends the time
Ranking         what `pagerank` returns

check_pagerank  are these the scores?
"""

from matchwood.ranking.random_surfer import Ranking, pagerank
from matchwood.ranking.random_surfer.check import check_pagerank, is_pagerank

__all__ = ["Ranking", "check_pagerank", "is_pagerank", "pagerank"]
