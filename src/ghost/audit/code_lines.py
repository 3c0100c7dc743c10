"""From a name to a line of code: where a function is defined, and where a metric gets its value.

Lines are found in the syntax trees of the files that are there now; nothing is imported.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ghost.runs.code import ROOT, module_path, sources

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Line:
    path: Path
    number: int
    function: str = ""  # the function around the line; empty outside of any

    @property
    def file(self) -> str:
        """The file as run records name it: ghost/evaluations/offline.py."""
        return str(self.path.relative_to(ROOT.parent))

    @property
    def where(self) -> str:
        """The place as editors and terminals take it: src/ghost/evaluations/offline.py:48."""
        return f"src/{self.file}:{self.number}"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8").splitlines()[self.number - 1].strip()


@cache
def function_line(module: str, name: str) -> Line | None:
    """Where a module, or one that it imports, defines a function, or else a dictionary there has it by name."""
    for path in _files([module]):
        for node in ast.walk(_tree(path)):
            if isinstance(node, Function) and node.name == name:
                return Line(path, node.lineno, name)
    return metric_line([module], "", name)


def metric_line(modules: Iterable[str], condition: str, metric: str) -> Line | None:
    """The line that gives a metric its value, in the modules or, if they do not name it, in the files that they import.

    The name stands there as a string; of several such lines the likeliest is taken (see `_places`). A name that is put
    together, such as ghost/latency, may stand nowhere; then its last part is looked for.
    """
    files = _files(modules)
    for path in sorted(files, key=lambda path: metric not in path.read_text(encoding="utf-8")):
        places = sorted(_places(_tree(path), condition, metric))
        if places:
            return Line(path, places[0][1], _around(_tree(path), places[0][1]))
    _, slash, last = metric.rpartition("/")
    return metric_line(modules, condition, last) if slash else None


def _files(modules: Iterable[str]) -> list[Path]:
    """The files of an experiment's modules: its own module, its step, what else it uses; then all that these import."""
    names = tuple(modules)
    own = [path for name in (*names[1:2], *names[:1], *names[2:]) if (path := module_path(name))]
    return list(dict.fromkeys([*own, *sources(*names, science=True)]))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def _places(tree: ast.Module, condition: str, metric: str) -> Iterator[tuple[int, int]]:
    """(rank, line number) of every place that names the metric; the lowest rank is the likeliest to give it its value.

    0  a call with condition and metric: Measured("all", "success", ...)
    1  a key of a dictionary, or what is assigned to one: {"mse": ...}, means["cosine"] = ...
    2  a call whose condition is a variable: Measured(task, "success", ...)
    3  any other string
    4  a string with gaps that the metric fits: f"{name}/latency"
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > 1 and _is(node.args[1], metric):
            named = isinstance(node.args[0], ast.Constant)
            yield 0 if _is(node.args[0], condition) else 3 if named else 2, node.args[1].lineno
        elif isinstance(node, ast.Dict):
            yield from ((1, key.lineno) for key in node.keys if key is not None and _is(key, metric))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is(node.slice, metric):
            yield 1, node.lineno
        elif isinstance(node, ast.Constant) and node.value == metric:
            yield 3, node.lineno
        elif isinstance(node, ast.JoinedStr) and _fits(node, metric):
            yield 4, node.lineno


def _is(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _fits(node: ast.JoinedStr, metric: str) -> bool:
    """Whether a metric can be an f-string's value. One without a fixed letter would fit anything."""
    fixed = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    pattern = "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[^/]+" for p in node.values)
    return bool(re.search("[A-Za-z]", fixed) and re.fullmatch(pattern, metric))


def _around(tree: ast.Module, number: int) -> str:
    """The innermost function around a line."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    inside = [node for node in functions if node.lineno <= number <= (node.end_lineno or 0)]
    return max(inside, key=lambda node: node.lineno).name if inside else ""
