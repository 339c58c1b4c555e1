"""`matchwood sense`: a capture to windows, a sum and statistics."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchwood.cli.options import Engine, Json, Threads
from matchwood.cli.output import amount, as_text, print_facts, print_json, print_table
from matchwood.cli.results import check_place
from matchwood.report.timing import clock

if TYPE_CHECKING:
    from matchwood.sensing import Sensing


# The table of windows that grows on stderr while packets are read, where that is a terminal.


COLUMNS = (
    "packets", "links", "max link", "sources", "max source", "fan-out", "destinations",
    "max destination", "fan-in",
)  # fmt: skip
ROWS = 10  # windows shown
DELAY = 1.0  # seconds; work that is over by then shows nothing
PAUSE = 0.25  # seconds between two drawings


class Live:
    """What `sense` reports, drawn every `PAUSE` seconds."""

    def __init__(self, captures: list[str]) -> None:
        from rich.console import Console
        from rich.live import Live as Screen

        self._screen = Screen(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._start = time.monotonic()
        self._drawn = self._start + DELAY - PAUSE
        self._total = _total_bytes(captures)
        self._open = False

    def __call__(self, told: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._drawn < PAUSE:
            return
        self._drawn = now
        if not self._open:
            self._screen.start()
            self._open = True
        self._screen.update(self._table(told, now - self._start), refresh=True)

    def _table(self, told: dict[str, Any], seconds: float) -> Any:
        from rich.table import Table

        rate = told["packets"] / max(seconds, 1e-9)
        of = f" of {amount(self._total)}" if self._total else ""
        title = (
            f"{told['packets']:,} packets, {amount(told['bytes'])}{of}, "
            f"{rate / 1e6:.3g} M packets/s"
        )
        table = Table(title=title, title_justify="left", header_style="dim")
        for head in ("window", *COLUMNS):
            table.add_column(head, justify="right")
        windows = told["windows"]
        for k in range(max(0, len(windows) - ROWS), len(windows)):
            table.add_row(f"{k:,}", *(f"{value:,}" for value in windows[k].nine().values()))
        return table

    def close(self) -> None:
        if self._open:
            self._screen.stop()


def _total_bytes(captures: list[str]) -> int | None:
    """Bytes of plain files; None where a compressed file or a pipe makes them unknown."""
    total = 0
    for name in captures:
        plain = name.endswith((".pcap", ".pcapng", ".cap", ".tar"))
        if not (plain and os.path.isfile(name)):
            return None
        total += os.path.getsize(name)
    return total


@contextlib.contextmanager
def live(captures: list[str]) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """A function for `on_chunk`; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    screen = Live(captures)
    try:
        yield screen
    finally:
        screen.close()


WINDOWS_SHOWN = 12  # rows of the table of windows
DIGITS = 30  # a longer number is no window


def sense(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAPTURE",
            help="PCAP or PCAPNG files, compressed or not, archives of matrices, or - for "
            "standard input.",
        ),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", help="Packets of a window, or a time: 131072, 10s.")
    ] = "131072",
    anonymize: Annotated[
        str | None,
        typer.Option("--anonymize", metavar="METHOD", help="cryptopan, permutation or truncate."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key; others must not read the file."),
    ] = None,
    bits: Annotated[
        int | None, typer.Option("--bits", help="Bits that truncate keeps, 0 to 32 (or 128).")
    ] = None,
    version: Annotated[int, typer.Option("--ip", help="4, or 6 for packets of IPv6.")] = 4,
    top: Annotated[
        int, typer.Option("--top", min=0, metavar="N", help="Show the N addresses that sent most.")
    ] = 0,
    ranges: Annotated[
        list[Path] | None,
        typer.Option(
            "--ranges",
            metavar="FILE",
            help="A list of CIDR blocks; may be repeated.  Statistics between them are added.",
        ),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive",
            metavar="PATH",
            help="Write the matrices of all windows: a folder/ gets 64 to a file, named by time; a "
            "file.tar gets all.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures.")
    ] = None,
    partial: Annotated[
        str, typer.Option("--partial", help="keep or drop a last window that is not complete.")
    ] = "keep",
    compat: Annotated[bool, typer.Option("--compat", help="Do what pcap2grb does.")] = False,
    memory: Annotated[
        str | None, typer.Option("--memory", help="Bytes for packets and sums: 512MB, 4GiB.")
    ] = None,
    batches: Annotated[
        int, typer.Option("--batches", min=1, help="Parts of 2^23 packets that are worked on.")
    ] = 1,
    devices: Annotated[
        str | None,
        typer.Option("--devices", metavar="0,1,...", help="GPUs that work at the same time."),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Only write a new key to a private file."),
    ] = None,
    engine: Engine = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Statistics of network traffic, window by window and of the whole.

    No address is shown or written except by --top and in the matrices of --archive, and only
    anonymous ones where --anonymize is given.
    """
    if new_key is not None:
        if captures:
            raise ValueError("sense: --new-key only writes a key; read the captures afterwards")
        _make_key(new_key, as_json)
        return
    if not captures:
        raise typer.BadParameter("a capture is needed", param_hint="CAPTURE...")
    from matchwood.sensing import archive_writer, sense

    if version not in (4, 6):
        raise ValueError(f"sense: --ip must be 4 or 6, got {version}")
    if html is not None:
        if html.suffix != ".html":
            raise ValueError(f"--html {html}: the name must end in .html")
        check_place(html, "--html")
    if archive is not None and Path(archive).is_file():
        check_place(Path(archive), "--archive", captures)
    if anonymize in ("cryptopan", "permutation") and key_file is None:
        raise ValueError(f"sense: {anonymize} needs a --key-file; --new-key FILE makes one")
    if anonymize == "truncate" and bits is None:
        raise ValueError("sense: truncate needs --bits, of an address that are kept")
    key = None if key_file is None else str(key_file)
    if anonymize is None and (key is not None or bits is not None):
        raise ValueError("sense: a key or bits need --anonymize")
    if version == 6 and archive is not None:
        raise ValueError("sense: --archive holds addresses of IPv4, got --ip 6")
    chosen = _ranges(ranges)
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(clock())
        writer = None
        if archive is not None:
            writer = stack.enter_context(archive_writer(archive, threads=threads))
        found = sense(
            captures if len(captures) > 1 else captures[0],
            window=int(window) if window.isdecimal() and len(window) < DIGITS else window,
            anonymize=anonymize,
            key=key,
            bits=bits,
            version=version,
            ranges=chosen,
            partial=partial,
            compat=compat,
            memory=memory,
            batches=batches,
            devices=_devices(devices),
            engine=engine,
            threads=threads,
            on_window=None if writer is None else writer.add,
            on_chunk=stack.enter_context(live(captures)),
        )
    written = [] if writer is None else [str(path) for path in writer.paths]
    if html is not None:
        from matchwood.io.files import replacing
        from matchwood.report.traffic import traffic_page

        text = traffic_page(found, captures, anonymize)
        with replacing(html) as stream:
            stream.write(text.encode())
    if as_json:
        _print_json(found, captures, anonymize, taken, written, html, top)
    else:
        _print_tables(found, captures, taken, written, html)
        if top:
            heads = ("address", "packets", "fan-out")
            print_table("who sent most", heads, found.top_talkers(top))


def _devices(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < DIGITS for part in parts):
        raise ValueError(f"sense: --devices must be numbers such as 0,1, got {text!r}")
    return [int(part) for part in parts]


def _make_key(path: Path, as_json: bool) -> None:
    from matchwood.sensing import new_key

    new_key(path)
    if as_json:
        print_json({"key_file": str(path)})
    else:
        print_facts("a new key, which only you may read", {"file": path})


def _ranges(files: list[Path] | None) -> dict[str, list[str]] | None:
    """Named by their files: rfc1918.txt is rfc1918.  A CIDR block a line; # begins a comment."""
    if not files:
        return None
    found: dict[str, list[str]] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"sense: the range file {file} is no text") from None
        lines = [line.partition("#")[0].strip() for line in text.splitlines()]
        if file.stem in found:
            raise ValueError(f"sense: two range files are named {file.stem}")
        found[file.stem] = [line for line in lines if line]
    return found


def _print_json(
    found: Sensing, captures: list[str], method: str | None, taken: Any, written: list[str],
    html: Path | None, top: int,
) -> None:  # fmt: skip
    from dataclasses import asdict

    from matchwood.applications.sensing.statistics.result import NINE

    histograms = {}
    for name, one in found.histograms.as_dict().items():
        fit = one.fit()
        histograms[name] = {
            "values": one.values,
            "counts": one.counts,
            "fit": None if fit is None else asdict(fit),
        }
    times = found.windows.time
    print_json(
        {
            "captures": captures,
            "anonymized": method,
            "capture": found.capture,
            "statistics": found.statistics.as_dict(),
            "windows": {
                "first": found.windows.first,
                "time": None if times is None else times,
                **{name: getattr(found.windows, name) for name in NINE},
            },
            "histograms": histograms,
            "blocks": None
            if found.blocks is None
            else [{"from": a, "to": b, **one.nine()} for (a, b), one in found.blocks.items()],
            "seconds": {"sense": asdict(taken), "phases": found.seconds},
            "archives": written,
            "html": str(html) if html else None,
            "top": [
                {"address": address, "packets": packets, "fan_out": fan_out}
                for address, packets, fan_out in found.top_talkers(top)
            ],
        }
    )


def _print_tables(
    found: Sensing, captures: list[str], taken: Any, written: list[str], html: Path | None
) -> None:
    skipped = [f"{reason} {as_text(count)}" for reason, count in found.capture["skipped"].items()
               if count]  # fmt: skip
    title = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
    rate = found.statistics.valid_packets / max(taken.seconds, 1e-9)
    print_facts(
        f"traffic of {title}",
        {
            **{name.replace("_", " "): value for name, value in found.statistics.nine().items()},
            "windows": len(found.windows),
            "read": amount(int(found.capture["bytes"])),
            "skipped": ", ".join(skipped) or "nothing",
            "dropped": found.capture["dropped"] or None,
            "packets a second": round(rate),
            "time": taken,
            "archives": ", ".join(written) or None,
            "page": html,
        },
    )
    if len(found.windows) > 1:
        shown = range(max(0, len(found.windows) - WINDOWS_SHOWN), len(found.windows))
        rows: list[Any] = [(k, *found.windows[k].nine().values()) for k in shown]
        print_table("the last windows", ("window", *COLUMNS), rows)
    if found.blocks is not None:
        pairs = [(a, b, *one.nine().values()) for (a, b), one in found.blocks.items()]
        print_table("between ranges", ("from", "to", *COLUMNS), pairs)
