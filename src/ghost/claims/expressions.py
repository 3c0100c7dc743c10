"""Small expressions in the ledger and in the report's own claims, evaluated without Python's `eval`.

Arithmetic, comparisons, `and`, `or`, `not`, lists, subscripts and calls of named functions; `a.b` is a name with a dot.
The caller gives names and functions their meaning: a setting of the study, a number of the article, a cell of ours.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ghost.errors import GhostError, did_you_mean

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
LONGEST = 2000  # characters of an expression
COMMON: dict[str, Callable[..., Any]] = {"abs": abs, "len": len, "max": max, "min": min, "sum": sum}


def evaluate(text: str, functions: Mapping[str, Callable[..., Any]], name: Callable[[str], Any] | None = None) -> Any:
    """The value of an expression. One that fails, whatever the reason, is one line."""
    if len(text) > LONGEST:
        raise GhostError(f"an expression of {len(text)} characters, {text[:40]!r}...; at most {LONGEST} are read")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError: too many brackets for the parser
        raise GhostError(f"not an expression: {text!r}") from None
    try:
        return _value(text, tree, {**COMMON, **functions}, name)
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise GhostError(f"{text!r}: {error}") from None  # its own: 1 / 0, 'a' < 1, max([]), [][0], mean(1)


def _value(text: str, tree: ast.AST, known: Mapping[str, Callable[..., Any]], name: Callable[[str], Any] | None) -> Any:
    """The value of a parsed expression. Texts and lists cannot be multiplied, so no value outgrows the expression."""

    def visit(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.List(elts=items):
                return [visit(item) for item in items]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                return OPERATORS[type(op)](visit(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                sides = (visit(left), visit(right))
                if any(isinstance(side, str | list | tuple | dict) for side in sides):
                    raise TypeError("arithmetic is for numbers")
                return OPERATORS[type(op)](*sides)
            case ast.BoolOp(op=op, values=values):
                return (all if isinstance(op, ast.And) else any)(visit(value) for value in values)
            case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in OPERATORS for op in ops):
                compared = [visit(left), *map(visit, rest)]
                return all(OPERATORS[type(op)](a, b) for op, a, b in zip(ops, compared, compared[1:], strict=False))
            case ast.Subscript(value=value, slice=index):
                return visit(value)[visit(index)]
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
                if function not in known:
                    raise GhostError(f"{text!r}: no function {function}{did_you_mean(function, known)}")
                return known[function](*map(visit, arguments))
            case ast.Name(id=word) if name:
                return name(word)
            case ast.Attribute(value=ast.Name(id=word), attr=attribute) if name:
                return name(f"{word}.{attribute}")
        raise GhostError(f"{text!r}: {ast.unparse(node)} is not allowed here")

    return visit(tree)
