"""`matchwood warmup`: compile everything once."""

from __future__ import annotations

from matchwood.cli.options import Json


def command(as_json: Json = False) -> None:
    """Compile all kernels now, so that later calls do not wait for it."""
    import matchwood
    from matchwood.cli.output import duration, print_facts, print_json
    from matchwood.cli.progress import progress

    with progress("compiling") as bar:
        summary = matchwood.warmup(report=lambda step: bar.say(f"compiling {step}"))
    if as_json:
        print_json(summary)
        return
    print_facts(
        "warmup",
        {
            "time": duration(summary["seconds"]),
            "compiled": f"{summary['compiled']} new files in the cache",
            "cache": summary["folder"] or "none: no folder can be written, nothing is kept",
        },
    )
