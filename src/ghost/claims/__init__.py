"""What the article publishes, number by number, and what our cells have to say to it.

`tex` and `tabular` read LaTeX, `article` finds its numbers, `ledger` is paper/claims.yaml, `new_ledger` starts another
one. `consistency` sets the article against itself, `verdicts` sets our cells against it, `appendix` puts the verdicts
into the report. `annotate` puts them into the article itself, and `weave` puts our numbers there.
"""
