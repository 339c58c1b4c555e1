"""
Fuzzy join: the same things in other words
==========================================

Each record is a set of words.  Two records are similar when their words can be matched well, also
where the words differ by some letters.
"""

import matplotlib.pyplot as plt

import matchwood

records = [
    ["graph", "matching", "databases"],
    ["graphs", "matchings", "database", "join"],
    ["salad", "soup", "sandwiches"],
    ["salads", "soups", "sandwich"],
]
pairs = matchwood.fuzzy_join(records, delta=0.2)
for left, right, score in zip(*pairs, strict=True):
    print(left, right, round(float(score), 3))

# %%
# The matching of the best pair: which words were taken for the same, and how similar they are.

found = matchwood.explain(records[0], records[1])
fig, ax = plt.subplots(figsize=(5.4, 2.6))
for row, (mine, theirs, similarity) in enumerate(found.matched):
    ax.plot([0.35, 0.65], [-row, -row], color="C0")
    ax.text(0.33, -row, mine, ha="right", va="center")
    ax.text(0.67, -row, theirs, ha="left", va="center")
    ax.text(0.5, -row + 0.1, f"{similarity:.2f}", ha="center")
for row, element in enumerate(found.right_only, len(found.matched)):
    ax.text(0.67, -row, element, ha="left", va="center", color="0.6")
ax.set(xlim=(0, 1), ylim=(-len(found.matched) - 0.5, 0.7), title=f"score {found.score:.3f}")
ax.axis("off")
fig.tight_layout()
