"""From CUDA text to compiled kernels: `.cu` files, our headers, types for template parameters.

A `Source` is declared at module level and needs no cupy until `kernels` is called.  Every one
registers itself in `SOURCES`, so that a test can compile all of them without a GPU.

Our headers are put inline, once each: CuPy's kernel cache compares the text it is given, but not
the files that the text includes.  A hash of the whole is one of the options as well.  An include is
looked for beside the file that asks, then in the folders above it up to its family, then in the
primitive of the same name, then in engines/gpu/device/.

A number that CUDA and Python both need is written in the CUDA text alone; `Source.constant` reads
it from there.  A declaration such as ``constexpr int TILE = TURNS * WARP;`` is found in the text
and evaluated; the names in it must be constants of the same text.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import operator
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from matchwood.engines.gpu.launch import C_NAMES, Kernel, Kernels, Parameter, parameters

# A type for a template parameter: a NumPy type, or C++ text (the name of a functor).
TypeLike = Any

# What a placeholder may stand for unless the Source says otherwise.
PLACEHOLDERS: Mapping[str, tuple[TypeLike, ...]] = {
    "I": (np.int32, np.int64),  # vertex or entry
    "W": (np.float32, np.float64),  # weight
    "K": (np.uint32, np.uint64),  # sort key
}

OPTIONS = ("-std=c++17",)

SOURCES: dict[tuple[str, str], Source] = {}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"matchwood/([\w./]+)"[^\n]*$', re.MULTILINE)
_ENTRY = re.compile(r"^\s*(?:(\w+)\s*=\s*)?(\w+)\s*(?:<(.*)>)?\s*$", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")

# At the start of a line only: not those of a struct or a function.  Constants that only the host
# reads are marked [[maybe_unused]].
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


class Source:
    """The kernels of one `.cu` file.

    Parameters
    ----------
    package : str
        The package that holds the file: ``__package__``.
    file : str
        Its name, as a rule ``"gpu.cu"``.
    kernels : sequence of str
        The kernels to build: ``"reset"``, ``"hook<I>"``, ``"relax<I,W>"``,
        ``"rows8 = rows<I,W,8>"`` (an alias names one of several instances).  Words between the
        angle brackets that are placeholders are replaced by types; the others stay.
    types : mapping of str to types, optional
        Placeholders besides I, W and K, or other choices for those.  The choices are what the
        compile test builds; `kernels` accepts any type.
    options : sequence of str, optional
        More options for NVRTC.
    """

    def __init__(
        self,
        package: str,
        file: str,
        kernels: Sequence[str],
        *,
        types: Mapping[str, Sequence[TypeLike]] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.package = package
        self.file = file
        self.choices: dict[str, tuple[TypeLike, ...]] = dict(PLACEHOLDERS)
        for name, choice in (types or {}).items():
            self.choices[name] = tuple(choice)
        self._entries = dict(_parse_entry(entry) for entry in kernels)
        self._options = (*OPTIONS, *options)
        self._text: str | None = None
        self._built: dict[tuple[Any, ...], Kernels] = {}
        self._lock = threading.Lock()
        SOURCES[package, file] = self

    def __repr__(self) -> str:
        return f"Source({self.package!r}, {self.file!r}, {tuple(self._entries)})"

    def text(self) -> str:
        """The file with our headers put in, each once, and `#line` marks for the compiler's log."""
        if self._text is None:
            path = resources.files(self.package).joinpath(self.file)
            text = path.read_text(encoding="utf-8")
            self._text = _inline(text, self.file, tuple(self.package.split(".")), set())
        return self._text

    def constant(self, name: str) -> int:
        """The value of ``constexpr int NAME = ...;`` in the file or in a header it includes."""
        return constant(self.text(), name)

    def constants(self, *names: str) -> tuple[int, ...]:
        return tuple(self.constant(name) for name in names)

    def options(self) -> tuple[str, ...]:
        """Options for NVRTC, a hash of the text among them."""
        digest = hashlib.sha256(self.text().encode()).hexdigest()[:16]
        return (*self._options, f"-DMATCHWOOD_TEXT=0x{digest}ull")

    def expressions(self, **types: TypeLike) -> dict[str, str]:
        """Name of each kernel that these types complete, and its C++ name expression."""
        made = {}
        for alias, (name, arguments) in self._entries.items():
            if self._placeholders(arguments) <= types.keys():
                filled = [_fill(argument, types) for argument in arguments]
                made[alias] = f"{name}<{', '.join(filled)}>" if filled else name
        return made

    def wanted(self, names: Sequence[str], types: Mapping[str, TypeLike]) -> dict[str, str]:
        """`expressions` of these kernels, or of all that the types complete when none is named."""
        made = self.expressions(**types)
        for name in names:
            if name not in self._entries:
                raise KernelError(f"{self.package}: {self.file} has no kernel {name}")
            if name not in made:
                needs = min(self._placeholders(self._entries[name][1]) - types.keys())
                raise KernelError(f"{self.package}: kernel {name} needs a type for {needs}")
        return {name: made[name] for name in names} if names else made

    def all_expressions(self) -> list[str]:
        """The name expressions of every kernel with every choice of its placeholders."""
        return list(dict.fromkeys(self._all_expressions()))

    def _all_expressions(self) -> Iterator[str]:
        for alias, (_, arguments) in self._entries.items():
            names = sorted(self._placeholders(arguments))
            for choice in itertools.product(*(self.choices[name] for name in names)):
                yield self.expressions(**dict(zip(names, choice, strict=True)))[alias]

    def _placeholders(self, arguments: Sequence[str]) -> set[str]:
        words = {word for argument in arguments for word in _WORD.findall(argument)}
        return words & self.choices.keys()

    def kernels(self, *names: str, **types: TypeLike) -> Kernels:
        """The kernels for these types on the current device, compiled when first asked for.

        All that the types complete are compiled together, or only those in `names`.
        """
        from matchwood import engines

        cupy = engines.cupy()
        # np.int32 and np.dtype(np.int32) are the same C type
        chosen = tuple((name, _c_name(kind)) for name, kind in sorted(types.items()))
        key = (cupy.cuda.runtime.getDevice(), names, chosen)
        built = self._built.get(key)
        if built is None:
            with self._lock:
                built = self._built.get(key)
                if built is None:
                    built = self._built[key] = self._build(cupy, names, types)
        return built

    def signature(self, name: str, arguments: Sequence[str]) -> list[Parameter]:
        """The parameters of kernel `name` with these template arguments."""
        found = parameters(self.text(), name, arguments)
        if found is None:
            raise KernelError(f"{self.package}: {self.file} has no kernel {name}")
        return found

    def _build(self, cupy: Any, names: Sequence[str], types: Mapping[str, TypeLike]) -> Kernels:
        unknown = types.keys() - self.choices.keys()
        if unknown:
            raise KernelError(f"{self.package}: {self.file} has no placeholder {min(unknown)}")
        expressions = self.wanted(names, types)
        options = self.options()
        module = cupy.RawModule(
            code=self.text(), options=options, name_expressions=tuple(expressions.values())
        )
        built = {}
        for alias, expression in expressions.items():
            name, arguments = self._entries[alias]
            filled = [_fill(argument, types) for argument in arguments]
            signature = self.signature(name, filled)
            try:
                function = module.get_function(expression).kernel
            except cupy.cuda.compiler.CompileException as error:
                raise KernelError(
                    f"{self.package}: {self.file} does not compile for {expression}:\n{error}"
                ) from error
            built[alias] = Kernel(f"{self.package}.{alias}", function, signature, filled)
        missing = {
            alias: sorted(self._placeholders(arguments) - types.keys())
            for alias, (_, arguments) in self._entries.items()
            if alias not in expressions
        }
        return Kernels(self.package, built, missing)


def _parse_entry(entry: str) -> tuple[str, tuple[str, list[str]]]:
    match = _ENTRY.match(entry)
    if match is None:
        raise ValueError(f"not a kernel: {entry!r}")
    alias, name, arguments = match.groups()
    split = [argument.strip() for argument in arguments.split(",")] if arguments else []
    return alias or name, (name, split)


def _fill(argument: str, types: Mapping[str, TypeLike]) -> str:
    return _WORD.sub(lambda word: _c_name(types.get(word[0], word[0])), argument)


def _c_name(kind: TypeLike) -> str:
    return kind if isinstance(kind, str) else C_NAMES[np.dtype(kind)]


def _inline(text: str, name: str, package: tuple[str, ...], seen: set[Any]) -> str:
    """`text` of that package with our includes replaced by the files, which may include others."""
    parts = [f'#line 1 "{name}"\n']
    end = 0
    for match in _INCLUDE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        home = header_home(match[1], package)
        if (home, match[1]) not in seen:
            seen.add((home, match[1]))
            header = _folder(home).joinpath(match[1]).read_text(encoding="utf-8")
            parts.append(_inline(header, match[1], home, seen))
            # the line break that ends the include line follows; announce the line after it
            parts.append(f'\n#line {text.count(chr(10), 0, end) + 2} "{name}"')
    parts.append(text[end:])
    return "".join(parts)


def header_home(header: str, package: tuple[str, ...]) -> tuple[str, ...]:
    """The package that holds what a file of `package` includes under that name."""
    family = 2 if package[0] == "matchwood" else len(package)
    above = [package[:depth] for depth in range(len(package), family - 1, -1)]
    primitive = ("matchwood", "primitives", header.removesuffix(".cuh"))
    for home in (*above, primitive, ("matchwood", "engines", "gpu", "device")):
        if _folder(home).joinpath(header).is_file():
            return home
    raise KernelError(f"{'.'.join(package)}: there is no header {header}")


def _folder(package: tuple[str, ...]) -> Any:
    if package[0] == "matchwood":  # without importing it
        return resources.files("matchwood").joinpath(*package[1:])
    return resources.files(".".join(package))


# Numbers of CUDA text


def constant(text: str, name: str) -> int:
    """The value of the integer constant `name` of CUDA text."""
    return _value(name, _declared(text), ())


def _declared(text: str) -> dict[str, set[str]]:
    """The declared values of each constant of the text; more than one is an error later."""
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
