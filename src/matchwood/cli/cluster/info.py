"""`matchwood dist info`: hosts, GPUs and libraries of the ranks, and how fast they talk."""

from __future__ import annotations

from typing import Any

from matchwood.cli.cluster.session import Threads, opened
from matchwood.cli.options import Json
from matchwood.cli.output import amount, duration, print_facts, print_json


def command(threads: Threads = None, as_json: Json = False) -> None:
    """Say where the ranks run, by what they talk, and measure latency and bandwidth."""
    import matchwood
    from matchwood.report.cluster.links import links

    with opened(threads) as comm:
        facts = matchwood.dist.describe(comm, mode="dicts")
        measured = links(comm)
        if comm.rank:
            return
        if as_json:
            print_json({**(facts or {}), "links": measured})
            return
        _show(facts or {}, measured)


def _show(facts: dict[str, Any], measured: dict[str, Any]) -> None:
    """The same as two tables for people."""
    hosts: dict[str, list[dict[str, Any]]] = {}
    for rank in facts["ranks"]:
        hosts.setdefault(rank["host"], []).append(rank)
    print_facts(
        "ranks",
        {
            "kind": f"{facts['kind']}, {facts['size']} ranks",
            "started by": ", ".join(facts["launchers"]) or None,
            "library": facts["library"],
            **{
                host: f"{len(ranks)} ranks, threads {_list(ranks, 'threads')}"
                + (f", GPUs {_list(ranks, 'gpu')}" if ranks[0]["gpu"] is not None else "")
                for host, ranks in hosts.items()
            },
            "versions": ", ".join(f"{k} {v}" for k, v in facts["versions"].items()) or None,
            "timeout": f"{facts['timeout']:g} s",
        },
    )
    if measured["bandwidth"] is not None:
        print_facts(
            "links",
            {
                "reduction of 8 bytes": duration(measured["allreduce"]),
                "barrier": duration(measured["barrier"]),
                "to the next rank": f"{amount(int(measured['bandwidth']))}/s, all at once",
            },
        )


def _list(ranks: list[dict[str, Any]], key: str) -> str:
    found = sorted({rank[key] for rank in ranks})
    return ", ".join(map(str, found))
