"""What a rank of a grid does alone in an iteration of PageRank; ranks has what ranks exchange.

block_of    the arcs of the block, prepared
pull        what the columns of the block give to its rows
Scorer      scores of own vertices, iteration by iteration
"""
