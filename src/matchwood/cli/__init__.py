"""The command line: `matchwood VERB ...`.  One file a verb, and four that they share.

output.py (tables, JSON, result files), load.py (a graph from a file or a generator), progress.py
(the bar) and options.py (options that several verbs have).  Verbs import NumPy and the library
inside their function, so that `matchwood --help` answers at once.

An error is one line on stderr and exit code 2; Ctrl-C is exit code 130.  With MATCHWOOD_DEBUG=1 in
the environment the traceback of an error is shown.
"""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli import cluster, errors
from matchwood.cli.files import convert, generate, info
from matchwood.cli.graphs import (
    bfs,
    coarsen,
    communities,
    components,
    factor,
    forest,
    match,
    mis,
    mst,
    scc,
)
from matchwood.cli.machine import bench, config, demo, warmup
from matchwood.cli.matrices import order, pagerank, precondition, solve
from matchwood.cli.sets import join
from matchwood.cli.traffic import sense

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


app.command("info")(info.command)
app.command("components")(components.command)
app.command("communities")(communities.command)
app.command("bfs")(bfs.command)
app.command("mis")(mis.command)
app.command("mst")(mst.command)
app.command("scc")(scc.command)
app.command("match")(match.command)
app.command("factor")(factor.command)
app.command("forest")(forest.command)
app.command("coarsen")(coarsen.command)
app.command("order")(order.command)
app.command("pagerank")(pagerank.command)
app.command("precondition")(precondition.command)
app.command("solve")(solve.command)
app.command("sense")(sense.command)
app.command("join")(join.command)
app.command("generate", context_settings=generate.SETTINGS)(generate.command)
app.command("convert")(convert.command)
app.command("bench")(bench.command)
app.command("warmup")(warmup.command)
app.command("config")(config.command)
app.command("demo")(demo.command)
app.add_typer(cluster.app, name="dist")


def main() -> None:
    """Entry point of the program `matchwood`."""
    app(prog_name="matchwood")
