"""The settings of a cluster: profiles/slurm/site.yaml, or the file that GHOST_SITE names. The Slurm profile reads them.

A site's file has what differs from profiles/slurm/site.yaml, whose other values hold. A key that does not exist there
is refused.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean, one_line
from ghost.files import read_yaml
from ghost.forms import has_form, shortened
from ghost.study.parts import GRAIN

SITE = Path("profiles/slurm/site.yaml")
VARIABLE = "GHOST_SITE"
COUNT = range(1, 1_000_001)
PARTITION = {"partition": str, "qos": str, "constraint": str, "arguments": str}
FORMS: Mapping[str, Any] = {
    "cpu": PARTITION,
    "gpu": {**PARTITION, "type": str, "finetune": COUNT, "tflops": float},
    **dict.fromkeys(("account", "setup", "scratch"), str),
    **dict.fromkeys(("node_mb", "longest_minutes", "jobs", "poll_seconds"), COUNT),
    "grain": dict.fromkeys(GRAIN, COUNT),
}


def read_site(root: Path = Path()) -> dict[str, Any]:
    """The project's own settings, with those of the site on top."""
    own, asked = root / SITE, Path(os.environ.get(VARIABLE) or root / SITE)
    given, defaults = read_yaml(asked), read_yaml(own)
    for path, settings in ((own, defaults), (asked, given)):
        _check(settings, FORMS, str(path))
    site = {**defaults, **given}
    for partition in ("cpu", "gpu"):
        site[partition] = {**defaults[partition], **given.get(partition, {})}
    return site


def arguments(partition: Mapping[str, str]) -> str:
    """sbatch's options for the jobs of a partition."""
    options = {"--partition": "partition", "--qos": "qos", "--constraint": "constraint"}
    named = [f"{option}={shlex.quote(partition[key])}" for option, key in options.items() if partition[key]]
    return " ".join([*named, *([partition["arguments"]] if partition["arguments"] else [])])


def _check(given: Any, forms: Mapping[str, Any], where: str) -> None:
    if not isinstance(given, dict):
        raise GhostError(f"{where}: must be a list of keys: {', '.join(forms)}")
    for key, value in given.items():
        if key not in forms:
            raise GhostError(f"{where}: no key {key!r}{did_you_mean(str(key), forms)}")
        if isinstance(forms[key], dict):
            _check(value, forms[key], f"{where}: {key}")
        elif not has_form(value, forms[key]):
            what = {str: "a text", float: "a number"}.get(forms[key], "a whole number above 0")
            raise GhostError(f"{where}: {key} must be {what}, got {shortened(repr(value))}")


def for_profile() -> dict[str, Any]:
    """The settings, for Snakemake's reader of profiles: a wrong file ends it with one line."""
    try:
        return read_site()
    except (GhostError, OSError) as error:
        sys.exit(f"ghost: error: {one_line(str(error))}")
