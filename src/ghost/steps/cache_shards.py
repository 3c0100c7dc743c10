"""Cache one range of a feature cache's shards: the options `--part`, `--parts` and `--done` of the driver.

One such job per GPU; then `ghost.steps.cache_features` finds every shard and writes the manifest. The bytes are the
same however many jobs share the work.
"""

from ghost.runs.driver import main
from ghost.steps.cache_features import cache_features

if __name__ == "__main__":
    main(cache_features)
