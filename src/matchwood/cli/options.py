"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A file, or a generator and its arguments: rmat:16  delaunay:n=5000,rng=3",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", help="cpu, gpu or reference.  Default: cpu.", metavar="NAME"),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Default: all CPUs this process may use.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
Check = Annotated[bool, typer.Option("--check", help="Check the answer against the definition.")]
Compact = Annotated[
    bool, typer.Option("--compact", help="The ids in the file have gaps: take those that occur.")
]
Pattern = Annotated[
    bool, typer.Option("--pattern", help="Every entry is 1, whatever the file says.")
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="NAME=VALUE",
        help="How to read the file, as matchwood.io.read says: --read symmetric=yes --read base=1",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the result: .npy, .npz, .txt or .csv.",
    ),
]
Rng = Annotated[int, typer.Option("--rng", min=0, help="Seed of all that is drawn at random.")]
Ties = Annotated[
    str, typer.Option("--ties", help="index or hash: which of equally heavy edges to prefer.")
]
