"""Choose the assets of LIBERO: those that the user names, else LIBERO's own if they are installed, else the primitives.

The user names them by `--config libero_assets=...`, which steps find in `$GHOST_LIBERO_ASSETS`: a folder with LIBERO's
asset tree, or `hub`. Then they are downloaded once, 1 GB, into the hub's own cache. Otherwise nothing is downloaded:
LIBERO puts its own into a folder `assets` inside the installed package, and the primitives are written once into the
user's cache folder. Records say which were used: the primitives are a stand-in, other assets are recorded by their
hash.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ghost.errors import GhostError
from ghost.files import cache_folder
from ghost.libero.primitives import write_primitives
from ghost.libero.things import THINGS
from ghost.runs.code import code_hash
from ghost.runs.outside import HUB, Place

VARIABLE = "GHOST_LIBERO_ASSETS"
ON_HUB = "lerobot/libero-assets"


@dataclass(frozen=True)
class Assets:
    folder: Path
    primitive: bool

    @property
    def facts(self) -> dict[str, str]:
        """For the records. The primitives come from our code, whose hash is recorded anyway."""
        return {"libero_assets": "primitives" if self.primitive else Place(str(self.folder)).content()}


def find_assets() -> Assets:
    """The assets of this machine. Only the environment decides, so that an experiment means the same everywhere."""
    given = os.environ.get(VARIABLE)
    if given:
        folder = from_hub() if given == HUB else Path(given)
        missing = [thing.path for thing in THINGS if not (folder / thing.path).is_file()]
        if missing:
            raise GhostError(f"${VARIABLE}: {folder} has no {missing[0]}; it must hold LIBERO's asset tree")
        return Assets(folder.resolve(), primitive=False)
    installed = package_folder() / "assets"
    if installed.is_dir():
        return Assets(installed, primitive=False)
    return primitive_assets()


def from_hub() -> Path:
    """LIBERO's own assets from the hub. Jobs that ask at the same time wait for one download."""
    from huggingface_hub import snapshot_download  # slow to import and seldom needed

    try:
        return Path(snapshot_download(ON_HUB, repo_type="dataset"))
    except OSError as error:
        why = str(error).strip().splitlines()[0]
        raise GhostError(f"cannot download {ON_HUB} from the hub ({why}); ${VARIABLE} may name a folder") from None


def primitive_assets() -> Assets:
    """The primitives, written if they are not there yet. Each version of them has its own folder."""
    folder = cache_folder() / f"libero-primitives-{code_hash('ghost.libero.primitives', science=True)[:12]}"
    if not (folder / "complete").is_file():
        write_primitives(folder)
        (folder / "complete").touch()
    return Assets(folder, primitive=True)


def package_folder() -> Path:
    """The folder of the installed hf-libero. Does not import it."""
    spec = find_spec("libero")
    if spec is None or not spec.submodule_search_locations:
        raise GhostError("LIBERO is not installed: pip install --no-deps -r requirements.lock")
    return Path(next(iter(spec.submodule_search_locations))) / "libero"
