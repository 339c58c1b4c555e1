"""`matchwood dist VERB ...`: the same questions, asked of all ranks that mpiexec or srun started.

session.py opens the communicator, loads the graph and prints; summary.py adds up what is shown;
writing.py writes one file from all ranks.  One file a verb, as for one machine.
"""

from __future__ import annotations

import typer

from matchwood.cli.cluster import bench, bfs, components, info, labels, match, mst, pagerank

app = typer.Typer(
    help="Graphs spread over many processes: mpiexec -n 16 matchwood dist components web.txt",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
app.command("components")(components.command)
app.command("bfs")(bfs.command)
app.command("match")(match.command)
app.command("pagerank")(pagerank.command)
app.command("labels")(labels.command)
app.command("mst")(mst.command)
app.command("info")(info.command)
app.command("bench")(bench.command)
