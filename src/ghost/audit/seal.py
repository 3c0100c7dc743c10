"""`ghost seal`: sign a build with an ssh key, so that a reader can tell who vouches for its numbers.

The signature is over the inventory, which has the sha256 of every file of the build (`ghost.report.inventory`). OpenSSH
makes and checks it (`ssh-keygen -Y`), in the format of git's ssh signatures. `config/allowed_signers`, or the file that
`--signers` names, lists the people whose signature counts, a line each: `alice@lab.org ssh-ed25519 AAAA...`.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ghost.audit.checks import Problem
from ghost.errors import GhostError

NAMESPACE = "ghost"  # a signature for another purpose does not count
SIGNERS = Path("config/allowed_signers")


def signature_of(inventory: Path) -> Path:
    return inventory.with_name(f"{inventory.name}.sig")


def seal(inventory: Path, key: Path) -> str:
    """Sign the inventory with a private key (or a public one whose private half the ssh agent has)."""
    if not key.is_file():
        raise GhostError(f"no key {key}; `ssh-keygen -t ed25519` makes one")
    signature = signature_of(inventory)
    signature.unlink(missing_ok=True)
    _ssh_keygen("sign", "-f", str(key), str(inventory))
    return f"{signature}: signed with {_key(inventory)}"


def signer(inventory: Path, signers: Path = SIGNERS) -> str:
    """Who vouches for the build; a signature that does not hold is an error."""
    signature = signature_of(inventory)
    if not signature.is_file():
        return "not signed: nobody vouches for the values (`ghost seal`)"
    key = _key(inventory)
    if not signers.is_file():
        return f"signed with {key}; no list of allowed signers says whose it is ({SIGNERS})"
    try:
        names = _ssh_keygen("find-principals", "-f", str(signers), "-s", str(signature)).split()
    except GhostError:
        raise GhostError(f"{signature}: signed with {key}, which {signers} does not list") from None
    _ssh_keygen("verify", "-f", str(signers), "-I", names[0], "-s", str(signature), content=inventory.read_bytes())
    return f"authentic: signed by {names[0]} with {key}"


def _key(inventory: Path) -> str:
    """The kind and the fingerprint of the key that made the signature, if it holds."""
    said = _ssh_keygen("check-novalidate", "-s", str(signature_of(inventory)), content=inventory.read_bytes())
    return match[1] if (match := re.search(r"with (\S+ key SHA256:\S+)", said)) else "a key"


def check_seal(inventory: Path, signers: Path = SIGNERS) -> Iterator[Problem]:
    signature = signature_of(inventory)
    if signers.is_file() and not signature.is_file():
        yield Problem("seal", str(signature), f"is missing, though {signers} lists who may sign; `ghost seal` signs")
        return
    try:
        signer(inventory, signers)
    except GhostError as error:
        yield Problem("seal", str(signature), str(error).removeprefix(f"{signature}: "))


def _ssh_keygen(what: str, *arguments: str, content: bytes = b"") -> str:
    if shutil.which("ssh-keygen") is None:
        raise GhostError("no ssh-keygen here; apt-get install openssh-client")
    command = ["ssh-keygen", "-Y", what, "-n", NAMESPACE, *arguments]
    # S603: OpenSSH's own tool; arguments are paths of ours and a name from the reader's own list
    done = subprocess.run(command, input=content, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        failed = "cannot sign" if what == "sign" else "the signature does not hold"
        raise GhostError(f"{failed}: {said[-1] if said else what}")
    return done.stdout.decode(errors="replace")
