"""Errors as one line on stderr, and the exit codes: 0 done, 2 an error, 130 Ctrl-C."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
import typer.core

ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells say it


class OneLineErrors(typer.core.TyperGroup):
    """The top command: whatever goes wrong in a verb ends in one line and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program and leave it with its exit code."""
        options["standalone_mode"] = False  # errors come to us
        try:
            code = super().main(*args, **options)
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except BrokenPipeError:
            # The reader (`| head`) has seen enough.  Nothing can be flushed at exit any more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except Exception as error:
            if os.environ.get("MATCHWOOD_DEBUG"):
                raise
            typer.echo(f"matchwood: {one_line(error)}", err=True)
            code = ERROR
        code = code if isinstance(code, int) else 0
        if code == INTERRUPTED:
            typer.echo("matchwood: interrupted", err=True)
        sys.exit(code)


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
    return " ".join(text.split())


def _is_ours(error: BaseException) -> bool:
    """True for errors whose text is written for users."""
    from matchwood.errors import EngineUnavailable

    return isinstance(error, (ValueError, TypeError, MemoryError, OSError, EngineUnavailable))
