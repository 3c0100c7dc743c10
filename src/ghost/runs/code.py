"""The import closure of a step, so that editing a module reruns just the steps that import it.

Snakemake cannot see behind `python -m ghost.<step>`; every rule passes `code_hash(<module>, ...)` as a parameter.
Hashed is the syntax tree without docstrings: comments and formatting rerun nothing. Two things are left out on purpose:
the study, since each step receives its experiment as a parameter, so that editing one does not rerun the others; and,
for runs (`science`), the bookkeeping around them: a new field in the records must not retrain everything.
"""

import ast
import hashlib
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from ghost.errors import GhostError
from ghost.files import cache_folder, write_json

ROOT = Path(__file__).parents[1]  # src/ghost
FACTS = 2  # raise it when `_facts` finds something else in the same file
STUDY = "ghost.study"
BOOKKEEPING = "ghost.runs"


def module_path(module: str) -> Path | None:
    """The file of `ghost.a.b`, or None when there is no such module of ours."""
    parts = module.split(".")
    if parts[0] != "ghost" or not all(part.isidentifier() for part in parts):
        return None
    stem = ROOT.joinpath(*parts[1:])
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


@cache
def _facts(path: Path) -> tuple[str, tuple[str, ...]]:
    """The hash of a file's syntax tree without docstrings, and the modules that it imports, also inside functions.

    Parsing all of our files takes a second or two, so the answer is kept in the user's cache, by the file's content.
    """
    content = path.read_bytes()
    key = hashlib.sha256(f"{FACTS} {sys.version_info[:2]}\n".encode() + content).hexdigest()
    kept = cache_folder() / "sources" / f"{key}.json"
    try:
        facts = json.loads(kept.read_bytes())
        return facts["sha256"], tuple(facts["imports"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not readable: parse
        tree = ast.parse(content, filename=str(path))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            found |= {str(name.value) for name in node.args if isinstance(name, ast.Constant)}
    named = sorted(found)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    with suppress(OSError):  # a cache that cannot be written is none
        write_json(kept, {"sha256": digest, "imports": named})
    return digest, tuple(named)


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of ours that a file names in an import, at the top or inside a function."""
    return frozenset(name for name in _facts(path)[1] if module_path(name) and not _below(name, STUDY))


@cache
def libraries(*modules: str) -> frozenset[str]:
    """The packages of others that the modules import, directly or not, by the names that they are imported under."""
    named = {name.split(".")[0] for path in sources(*modules, science=True) for name in _facts(path)[1]}
    return frozenset(named - {"ghost"})


@cache
def sources(*modules: str, science: bool = False) -> tuple[Path, ...]:
    """Every file of ours that the modules import, directly or not, themselves included; `science`: no bookkeeping."""
    seen: dict[str, Path] = {}
    queue = list(modules)
    while queue:
        module = queue.pop()
        path = module_path(module)
        if path is None:
            raise GhostError(f"no module {module} under {ROOT.name}/")
        if module not in seen:
            seen[module] = path
            queue.extend(name for name in imports(path) if not (science and _keeps_books(name)))
    return tuple(sorted(set(seen.values())))


def _below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _keeps_books(module: str) -> bool:
    """Modules at the root (errors, files) and those of `ghost.runs`: none of them changes a result."""
    return (module.count(".") < 2 and not (ROOT / module.partition(".")[2]).is_dir()) or _below(module, BOOKKEEPING)


def file_hash(path: Path) -> str:
    return _facts(path)[0]


@cache
def code_hash(*modules: str, science: bool = False) -> str:
    """One hash over the closure: what rules and run records carry."""
    digest = hashlib.sha256()
    for path in sources(*modules, science=science):
        digest.update(f"{path.relative_to(ROOT)} {file_hash(path)}\n".encode())
    return digest.hexdigest()
