"""Find TeX: on the PATH, or where somebody without root has put a TeX Live. `python -m ghost.report.tex` says if there
is one; `make` asks before our packages are installed, so this file imports none of them."""

import os
import shutil
import sys
from pathlib import Path

# In the home of its user, as its installer proposes, TinyTeX, MacTeX. The newest year comes last.
PLACES = (".TinyTeX/bin/*", "texlive/*/bin/*", "/Library/TeX/texbin", "/usr/local/texlive/*/bin/*")


def available() -> bool:
    """Whether there is a TeX. One that is found in a usual place is put on the PATH, for the jobs as well."""
    path = os.environ.get("PATH", "")
    if _has_tex(path):
        return True
    found = [folder for place in PLACES for folder in _folders(place) if _has_tex(folder)]
    if found:
        os.environ["PATH"] = os.pathsep.join([path, found[-1]])
    return bool(found)


def _has_tex(path: str) -> bool:
    return all(shutil.which(program, path=path) for program in ("latexmk", "pdflatex"))


def _folders(place: str) -> list[str]:
    top, pattern = (Path("/"), place[1:]) if place.startswith("/") else (Path.home(), place)
    return sorted(map(str, top.glob(pattern)))


if __name__ == "__main__":
    sys.exit(0 if available() else 1)
