"""Numbers that are written in CUDA text and needed by the host as well.

A declaration such as ``constexpr int TILE = TURNS * WARP;`` is found in the text and worked out;
the names in it must be constants of the same text.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

# At the start of a line: constants of a struct or a function are its own.  What only the host
# reads is marked, so that the compiler does not complain.
_DECLARATION = re.compile(
    r"^(?:\[\[maybe_unused\]\]\s+)?constexpr\s+(?:\w+\s+)+?(\w+\s*=[^;]+);", re.MULTILINE
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SUFFIX = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b")
_OPERATORS: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.USub: operator.neg,
}


class KernelError(RuntimeError):
    """A kernel does not compile, or is called with types it was not declared for."""


def constant(text: str, name: str) -> int:
    """The value of the integer constant `name` of CUDA text."""
    return _value(name, _declared(text), ())


def _declared(text: str) -> dict[str, set[str]]:
    """What each constant of the text is declared to be; more than one thing is an error later."""
    found: dict[str, set[str]] = {}
    for match in _DECLARATION.finditer(_COMMENT.sub("", text)):
        for part in match[1].split(","):
            name, _, value = part.partition("=")
            found.setdefault(name.strip(), set()).add(value.strip())
    return found


def _value(name: str, declared: dict[str, set[str]], asking: tuple[str, ...]) -> int:
    values = declared.get(name, set())
    if len(values) != 1 or name in asking:
        what = "no constant" if not values else "several constants"
        raise KernelError(f"the CUDA text has {what} {name}")
    expression = _SUFFIX.sub(r"\1", next(iter(values))).replace("/", "//")
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise KernelError(f"{name} is no plain number in the CUDA text: {expression}") from None
    return _evaluated(tree, declared, (*asking, name))


def _evaluated(node: ast.AST, declared: dict[str, set[str]], asking: tuple[str, ...]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.Name):
        return _value(node.id, declared, asking)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _evaluated(node.left, declared, asking)
        return int(_OPERATORS[type(node.op)](left, _evaluated(node.right, declared, asking)))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return int(_OPERATORS[type(node.op)](_evaluated(node.operand, declared, asking)))
    raise KernelError(f"{asking[-1]} is no sum, product or shift of whole numbers")
