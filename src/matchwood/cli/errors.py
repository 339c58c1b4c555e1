"""Errors as one line on stderr, and the exit codes.

0 done, 1 done but short of what was asked for (not converged), 2 an error, 130 Ctrl-C.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

import typer
import typer.core

from matchwood.cli.output import plain

FELL_SHORT = 1
ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells
LONGEST = 800  # characters of an error line, which repeats what was typed


class FellShort(Exception):
    """The answer was shown and written, but is not as good as was asked for."""


class OneLineErrors(typer.core.TyperGroup):
    """The top command: whatever goes wrong in a verb ends in one line and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program and leave it with its exit code."""
        options["standalone_mode"] = False  # errors are raised here
        given = args[0] if args else options.pop("args", None)
        words = _new_names(sys.argv[1:] if given is None else list(given))
        try:
            code = super().main(words, *args[1:], **options)
            sys.stdout.flush()  # so that a closed pipe is noticed here
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except BrokenPipeError:
            # The reader (`| head`) has seen enough.  Nothing can be flushed at exit any more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except Exception as error:
            if os.environ.get("MATCHWOOD_DEBUG"):
                raise
            typer.echo(f"matchwood: {self._as_typed(one_line(error), words)}", err=True)
            code = FELL_SHORT if isinstance(error, FellShort) else ERROR
        code = code if isinstance(code, int) else 0
        if code == INTERRUPTED:
            typer.echo("matchwood: interrupted", err=True)
        sys.exit(code)

    def _as_typed(self, text: str, words: list[str]) -> str:
        """A message in the words of the command line: the verb, and its options.

        Messages of the library begin with a function of Python and often name an argument next.
        """
        verb, command = _verb(self, words)
        function, colon, rest = text.partition(": ")
        if not (verb and colon and function in _functions()):
            return text
        name, blank, rest = rest.partition(" ")
        options = {
            option.lstrip("-").replace("-", "_"): option
            for parameter in command.params
            for option in parameter.opts
        }
        if function == "read":
            options = {name: f"--read {name}" for name in _reading()}
        return f"{verb}: {options.get(name, name)}{blank}{rest}"


def _verb(group: Any, words: list[str]) -> tuple[str, Any]:
    """The verb that was typed ("dist bfs" for one inside another), and its command."""
    found = []
    for word in words:
        if word not in getattr(group, "commands", {}):
            break
        found.append(word)
        group = group.commands[word]
    return " ".join(found), group


def _reading() -> Iterable[str]:
    """The arguments of `matchwood.io.read`, which --read has."""
    from matchwood.io import read

    return inspect.signature(read).parameters


def _functions() -> set[str]:
    """The names with which messages of the library begin."""
    import matchwood
    from matchwood import check, io, preconditioners

    pages = (matchwood, check, io, preconditioners)
    return {"Graph.on", "run", "world"}.union(*(page.__all__ for page in pages))


def _new_names(words: list[str]) -> list[str]:
    """The command line with options by their present names; old ones work for one release."""
    if any(word.split("=")[0] == "--seed" for word in words):
        typer.echo("matchwood: --seed is now --rng", err=True)
    return ["--rng" + w[6:] if w.split("=")[0] == "--seed" else w for w in words]


def one_line(error: BaseException) -> str:
    """What went wrong, in one line, for a reader who does not know the source."""
    message = getattr(error, "format_message", None)  # wrong use of the command line
    if callable(message):
        text = str(message()).rstrip(".") + "; see --help"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif _is_ours(error):
        text = str(error) or type(error).__name__
    else:
        text = f"{type(error).__name__}: {error} (MATCHWOOD_DEBUG=1 shows where)"
    line = plain(" ".join(as_options(text).split()))
    half = LONGEST // 2
    return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


def as_options(text: str) -> str:
    """Advice about arguments of Python's functions, as options of the command line."""
    text = text.replace("pass compact=True", "give --compact")
    if text.startswith("write:"):
        return text.replace("pass format=", "give --format NAME")
    text = text.replace("pass format=", "give --read format=NAME")
    text = re.sub(r"\b(pass|or) (header|most_\w+)=", r"\1 --read \2=", text)
    return text.replace("pass --read", "give --read")


def _is_ours(error: BaseException) -> bool:
    """True for errors whose text is written for users."""
    from matchwood.errors import EngineUnavailable

    ours = (FellShort, ValueError, TypeError, MemoryError, OSError, EngineUnavailable)
    return isinstance(error, ours)
