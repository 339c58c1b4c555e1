"""The command line: `matchwood VERB ...`.  Verbs of a kind lie in one file; registry.py names them.

They share options.py (the options that several have, and loading, timing, checking, reporting),
load.py (a graph from a file or a generator), output.py (tables, JSON, the bar) and results.py
(result files).  Verbs import NumPy and the library inside their function, so that
`matchwood --help` answers at once.

An error is one line on stderr and exit code 2; Ctrl-C is exit code 130.  With MATCHWOOD_DEBUG=1 in
the environment the traceback of an error is shown.
"""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from matchwood import registry
from matchwood.cli import cluster, errors, files, graphs, machine, matrices, orders, sets, traffic

app = typer.Typer(
    cls=errors.OneLineErrors,
    help="Structure in large sparse graphs and matrices.",
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,  # a traceback must not show a key
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from matchwood._version import __version__

        typer.echo(f"matchwood {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("info")(files.info)
for _verb in dict.fromkeys(entry.verb for entry in registry.PROBLEMS if entry.verb):
    _homes = [home for home in (graphs, matrices, orders, traffic, sets) if hasattr(home, _verb)]
    app.command(_verb)(getattr(_homes[0], _verb))
app.command("generate", context_settings=files.SETTINGS)(files.generate)
app.command("convert")(files.convert)
app.command("bench")(machine.bench)
app.command("warmup")(machine.warmup)
app.command("config")(machine.config)
app.command("demo")(machine.demo)
app.add_typer(cluster.app, name="dist")


def main() -> None:
    """Entry point of the program `matchwood`."""
    # the verbs end with an error of one line
    warnings.filterwarnings("ignore", "pagerank: not converged", RuntimeWarning)
    warnings.formatwarning = lambda message, *_, **__: f"matchwood: warning: {message}\n"
    app(prog_name="matchwood")
