"""`matchwood config`: what the library finds on this machine."""

from __future__ import annotations

from matchwood.cli.options import Json


def command(as_json: Json = False) -> None:
    """Show threads, CPUs, caches, versions and GPUs."""
    import matchwood
    from matchwood.cli.output import amount, print_facts, print_json

    found = matchwood.show_config(mode="dicts")
    assert found is not None
    if as_json:
        print_json(found)
        return
    cpu, cache, gpu = found["cpu"], found["cache"], found["gpu"]
    devices = [
        f"{device['name']}, {amount(device['bytes'])}, compute {device['compute_capability']}"
        for device in gpu["devices"]
    ]
    print_facts(
        f"matchwood {found['matchwood']}",
        {
            "python": f"{found['python']} on {found['system']}",
            "cpu": f"{cpu['threads']} threads on {cpu['cpus']} CPUs ({cpu['architecture']})",
            "cache": cache["folder"] or "none: no folder can be written",
            "cached": f"{cache['files']} files, {amount(cache['bytes'])}",
            "gpu": "; ".join(devices) or f"none: {gpu['reason']}",
            **{name: version or "not installed" for name, version in found["versions"].items()},
        },
    )
