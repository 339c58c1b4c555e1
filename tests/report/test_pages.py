"""Pages in a browser: no errors, every picture drawn, nothing wider than a phone."""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchwood
from matchwood.report.joins import page_of as join_page
from matchwood.report.orders import page_of as order_page
from matchwood.report.page import STYLE
from matchwood.report.traffic import traffic_page

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell", "chrome")
WIDTHS = (390, 1200)  # pixels: a phone, a screen
TALL = 150  # pixels of a row of a table: more has words cut into letters
# The page in a frame of each width: what is wider than it, and which pictures have no size.
LOOK = """<!doctype html><meta charset="utf-8"><body><script>
const found = [];
async function look(width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:2000px;border:0`;
  const loaded = new Promise(done => frame.onload = done);
  frame.src = "PAGE"; document.body.append(frame); await loaded;
  const inside = frame.contentDocument, errors = [];
  const pictures = [...inside.querySelectorAll("svg, img")].filter(p => p.checkVisibility());
  const empty = pictures.filter(p => p.getBoundingClientRect().height < 1
    || (p.tagName === "IMG" && !p.naturalWidth)).map(p => p.outerHTML.slice(0, 80));
  const tall = [...inside.querySelectorAll("tr")].map(r => r.clientHeight).filter(h => h > TALL);
  const wide = inside.documentElement.scrollWidth;
  found.push({width, tall, wide, pictures: pictures.length, empty});
}
(async () => { for (const width of WIDTHS) await look(width);
  document.body.innerHTML = "<pre id=found></pre>";
  document.getElementById("found").textContent = JSON.stringify(found); })();
</script>"""


def browser() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed; name it by $CHROMIUM")
    return found


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


def looked_at(folder: Path, name: str) -> None:
    """Open a page of the folder at all widths; fails where something is wrong with it."""
    program = browser()
    text = (
        LOOK.replace("PAGE", name).replace("WIDTHS", json.dumps(WIDTHS)).replace("TALL", str(TALL))
    )
    (folder / "look.html").write_text(text)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        words = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                 "--virtual-time-budget=20000", "--dump-dom")  # fmt: skip
        address = f"http://127.0.0.1:{server.server_port}/look.html"
        done = subprocess.run(
            [program, *words, address], capture_output=True, text=True, timeout=120, check=False
        )
        server.shutdown()
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    complaints = [line for line in said if "[PST]: Changed to" not in line]  # a note of the theme
    assert not complaints
    shown = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert shown, done.stdout[-500:] + done.stderr[-500:]
    for one in json.loads(html.unescape(shown[1])):
        assert one["wide"] <= one["width"], one
        assert one["pictures"] > 0
        assert not one["empty"], one
        assert not one["tall"], one


def order_of(method: str) -> str:
    A = matchwood.generators.delaunay(500, rng=1)
    found = matchwood.locality_ordering(A, method)
    return order_page("a triangulation", method, A, matchwood.permute(A, found.perm), found)


def join_of() -> str:
    rows = [["database", "systems"], ["databases", "system"], ["graphs", "a" * 60], ["graph"]]
    sides = [matchwood.collection(rows)]
    return join_page("tags.csv", matchwood.fuzzy_join(*sides, delta=0.3), sides)


def traffic_of() -> str:
    src, dst = matchwood.generators.packets(2_000, "zipf", hosts=500, exponent=1.3, rng=2)
    found = matchwood.sense((src, dst), window=100, ranges={"low": ["0.0.0.0/8"]})
    return traffic_page(found, ["trace.pcap"], "permutation")


PAGES: dict[str, Any] = {
    "order": functools.partial(order_of, "rabbit"),
    "auto": functools.partial(order_of, "auto"),
    "join": join_of,
    "traffic": traffic_of,
}


@pytest.mark.parametrize("name", PAGES)
def test_reports_are_whole(name: str) -> None:
    """Closed tags, nothing fetched, and grids that can be narrower than a phone."""
    text = PAGES[name]()
    assert text.startswith("<!doctype html>")
    for tag in ("figure", "table", "svg", "div"):
        assert text.count(f"<{tag}") == text.count(f"</{tag}>")
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="', text)
    assert not re.search(r"minmax\(\d+px", text)


def test_reports_without_anything_found_say_so() -> None:
    """An axis up to one pair, or windows from 0 to 0, were drawn."""
    rows = [["a"], ["b"]]
    text = join_page("x.csv", matchwood.fuzzy_join(rows), [matchwood.collection(rows)])
    assert "No two records reach the threshold." in text
    assert "<svg" not in text
    empty = np.empty(0, np.uint32)
    text = traffic_page(matchwood.sense((empty, empty)), ["x.pcap"], None)
    assert "0 packets in 0 windows" in text
    assert "<svg" not in text


def test_names_and_records_are_text(tmp_path: Path) -> None:
    """A name that is no UTF-8 ended in an error, after all the work."""
    name = os.fsdecode(b"\xff<script>alert(1)'\".csv")
    rows = [["<b>&lt;x</b>", "'\"<script>"], ["<b>&lt;x</b>", "'\"<script>"]]
    pairs, sides = matchwood.fuzzy_join(rows), [matchwood.collection(rows)]
    empty = np.empty(0, np.uint32)
    A = matchwood.generators.path(3)
    found = matchwood.locality_ordering(A, "natural")
    for text in (
        join_page(name, pairs, sides),
        traffic_page(matchwood.sense((empty, empty)), [name], None),
        order_page(name, "natural", A, A, found),
    ):
        text.encode()
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "<b>" not in text


def test_a_picture_of_long_records_has_a_few_lines() -> None:
    """Two records of 3,000 elements made a page of megabytes."""
    rows = [[f"{k}x{k}" for k in range(200)], [f"{k}x{k}" for k in range(10, 260)]]
    pairs = matchwood.fuzzy_join(rows, delta=0.5)
    text = join_page("long", pairs, [matchwood.collection(rows)])
    assert text.count("<text") < 250
    assert re.search("and [0-9]+ more", text)


def luminance(color: str) -> float:
    """Relative, as WCAG defines it."""
    digits = color if len(color) == 6 else "".join(2 * c for c in color)
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    r, g, b = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_text_stands_out_in_light_and_dark() -> None:
    """At least 4.5 to 1, as WCAG asks; heads of tables had 2.6."""
    for theme in STYLE.split("prefers-color-scheme: dark"):
        colors = dict(re.findall(r"--(\w+): #(\w+);", theme))
        for text in ("ink", "quiet", "good"):
            for ground in ("ground", "card"):
                one, other = sorted((luminance(colors[text]), luminance(colors[ground])))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (text, ground)


@pytest.mark.slow
def test_formulas_are_drawn_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every formula of the pages becomes outlines; MathJax, which was fetched, left raw TeX."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from formulas import drawn

    text = "\n".join(path.read_text() for path in (ROOT / "docs").glob("[!_]*/*.rst"))
    text += "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.rst"))
    found = set(re.findall(r":math:`([^`]+)`", text))
    found |= set(re.findall(r"^\.\. math::\n\n((?:   .*\n)+)", text, re.MULTILINE))
    assert len(found) > 30
    for tex in found:
        made = drawn(" ".join(tex.split()))
        assert made.count("<svg") == 1
        assert 'd="M' in made
    assert "mathjax" not in (ROOT / "docs" / "conf.py").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_reports_in_a_browser(name: str, tmp_path: Path) -> None:
    browser()
    (tmp_path / "page.html").write_text(PAGES[name]())
    looked_at(tmp_path, "page.html")


@pytest.mark.slow
def test_the_demo_in_a_browser(tmp_path: Path) -> None:
    from matchwood.report import demo, show

    browser()
    (tmp_path / "page.html").write_text(show.html(demo.run(size="tiny")))
    looked_at(tmp_path, "page.html")


def test_the_landing_page_in_a_browser(tmp_path: Path) -> None:
    browser()
    built = ROOT / "docs" / "_build" / "html"
    if not (built / "index.html").exists():
        pytest.skip("the docs are not built: make docs")
    shutil.copytree(built, tmp_path / "html")
    looked_at(tmp_path / "html", "index.html")
