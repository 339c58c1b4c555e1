"""What matchwood finds on this machine."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matchwood._version import __version__

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "networkx", "mpi4py")
CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Show threads, CPUs, where compiled code comes from, versions and the GPU.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        "stdout" prints, "dicts" returns nested dictionaries instead, as
        `scipy.show_config` does.

    Returns
    -------
    config : dict or None
        Keys ``matchwood``, ``python``, ``system``, ``cpu`` (``threads``, ``cpus``), ``kernels``
        (``library``, ``level``, ``changed``, ``reason``), ``cache`` (``folder``, ``bytes``,
        ``files``), ``gpu`` (``available``, ``reason``, ``devices``) and ``versions``.

    Raises
    ------
    ValueError
        If `mode` is neither.

    Examples
    --------
    >>> import matchwood
    >>> config = matchwood.show_config(mode="dicts")
    >>> config["matchwood"] == matchwood.__version__, config["cpu"]["threads"] >= 1
    (True, True)
    """
    from matchwood.arguments import one_of  # here: it imports NumPy

    one_of("show_config", "mode", mode, ("stdout", "dicts"))
    config = _facts()
    if mode == "dicts":
        return config
    print("\n".join(_lines(config)))  # noqa: T201  that is what it is for
    return None


def _facts() -> dict[str, Any]:
    from matchwood.engines.cpu import available_cpus, cache_folder, default_threads

    folder = cache_folder()
    files = _files(folder)
    return {
        "matchwood": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": {
            "architecture": platform.machine(),
            "cpus": available_cpus(),
            "threads": default_threads(),
        },
        "kernels": _kernels(),
        "cache": {
            "folder": None if folder is None else str(folder),
            "files": len(files),
            "bytes": sum(files),
        },
        "gpu": _gpu(),
        "versions": _versions(),
    }


def _kernels() -> dict[str, Any]:
    """The library of compiled kernels, and the files of it that have changed since."""
    from matchwood.engines.cpu import library

    found, reason = library.opened()
    if found is None:
        return {"library": None, "level": None, "changed": [], "reason": reason}
    changed = found.changed()
    return {"library": str(found.path), "level": found.level, "changed": changed, "reason": None}


def _files(folder: Path | None) -> list[int]:
    """Sizes of the files; those that another process removes at the same time do not count."""
    sizes = []
    for path in [] if folder is None else folder.rglob("*"):
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                sizes.append(found.st_size)
    return sizes


def _versions() -> dict[str, str | None]:
    """Versions of what is installed, without importing it; None where it is not."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        found[name] = _version(name)
    found["cupy"] = next((f"{v} ({name})" for name in CUPY if (v := _version(name))), None)
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu() -> dict[str, Any]:
    from matchwood import engines
    from matchwood.errors import EngineUnavailable

    try:
        cupy = engines.cupy()
    except EngineUnavailable as error:
        return {"available": False, "reason": str(error), "devices": []}
    devices = []
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        devices.append(
            {
                "name": properties["name"].decode(),
                "bytes": int(properties["totalGlobalMem"]),
                "compute_capability": f"{properties['major']}.{properties['minor']}",
            }
        )
    return {"available": True, "reason": None, "devices": devices}


def kernels_line(kernels: dict[str, Any]) -> str:
    """Where kernels come from, in a line."""
    if kernels["library"] is None:
        return f"compiled here: {kernels['reason']}"
    changed = len(kernels["changed"])
    rest = f", but those of {changed} changed files, compiled here" if changed else ""
    return f"{kernels['library']}{rest}"


def _lines(config: dict[str, Any]) -> Iterator[str]:
    cpu, cache, gpu = config["cpu"], config["cache"], config["gpu"]
    yield f"matchwood  {config['matchwood']}"
    yield f"python     {config['python']} on {config['system']}"
    yield f"cpu        {cpu['threads']} threads on {cpu['cpus']} CPUs ({cpu['architecture']})"
    yield f"kernels    {kernels_line(config['kernels'])}"
    if cache["folder"] is None:
        yield "cache      none: no folder is this user's alone, every process compiles its kernels"
    else:
        megabytes = cache["bytes"] / 1e6
        yield f"cache      {cache['folder']} ({cache['files']} files, {megabytes:.1f} MB)"
    for device in gpu["devices"]:
        gigabytes = device["bytes"] / 2**30
        yield f"gpu        {device['name']}, {gigabytes:.0f} GiB, {device['compute_capability']}"
    if not gpu["available"]:
        yield f"gpu        none: {gpu['reason']}"
    for name, version in config["versions"].items():
        yield f"{name:10} {version or 'not installed'}"
