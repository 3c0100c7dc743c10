"""What the article publishes, number by number, and what our cells have to say to it.

`article` reads its text, `ledger` is paper/claims.yaml, `consistency` sets the article against itself, `verdicts` sets
our cells against it, `appendix` puts the verdicts into the report.
"""
