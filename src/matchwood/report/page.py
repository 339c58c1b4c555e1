"""Pages as one HTML file: no scripts, nothing fetched, light or dark as the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { --ground: #fcfcfa; --card: #fff; --ink: #2a2f36; --faint: #9aa1ab; --line: #e3e5e8;
        --quiet: #666e79; --good: #1a7f4b; --main: #0b74b8; --second: #0a9468;
        color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16191d; --card: #1e2227; --ink: #dfe3e8; --faint: #737b86; --line: #333940;
          --quiet: #98a1ac; --good: #5cc98d; --main: #4ea8e6; --second: #3fc796; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 28px 22px 60px; background: var(--ground);
       color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 38px 0 8px; }
h3 { font-size: 15px; margin: 0 0 2px; }
p { margin: 6px 0 12px; max-width: 70ch; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { text-align: left; padding: 5px 9px; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); vertical-align: bottom; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.good { color: var(--good); } tr.first td { border-top: 2px solid var(--line); }
.wide { overflow-x: auto; } body { overflow-wrap: anywhere; } table { overflow-wrap: normal; }
@media (max-width: 480px) { body { padding: 18px 12px 40px; } table { font-size: 12.5px; }
  th, td { padding: 4px 5px; } .two { grid-template-columns: 1fr; } }
.cards, .pair { display: grid; gap: 16px; }
.cards { grid-template-columns: repeat(auto-fill, minmax(min(420px, 100%), 1fr)); }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
         padding: 14px; } figcaption { font-size: 13.5px; } svg { width: 100%; height: auto; }
body > figure { max-width: 560px; }
summary { cursor: pointer; }
.two { display: grid; grid-template-columns: 2fr 3fr; gap: 10px; align-items: end; }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """The whole file."""
    text = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{chr(10).join(sections)}\n</body></html>\n"
    )
    return text.encode(errors="replace").decode()  # names of files may be no UTF-8


def heading(title: str, *paragraphs: str, level: int = 2) -> str:
    """A heading and paragraphs of plain text."""
    words = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    return f"<h{level}>{escape(title)}</h{level}>{words}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> str:
    """A table; columns in `numbers` stand to the right.

    A cell equal to the one above it in the first column is left empty, and a line is drawn where it
    changes.
    """
    right = set(numbers)
    head = "".join(
        f"<th{' class=n' if k in right else ''}>{escape(text)}</th>" for k, text in enumerate(heads)
    )
    body, above = [], None
    for row in rows:
        cells = []
        for k, text in enumerate(row):
            shown = "" if k == 0 and text == above else escape(text)
            kind = " class=n" if k in right else " class=good" if text.startswith("right") else ""
            cells.append(f"<td{kind}>{shown}</td>")
        body.append(f"<tr{' class=first' if row[0] != above else ''}>{''.join(cells)}</tr>")
        above = row[0]
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def quiet(words: str) -> str:
    """A paragraph that stands back."""
    return f'<p class="quiet">{escape(words)}</p>'


def folded(words: str, inside: str) -> str:
    """What is shown once the reader opens it."""
    return f"<details><summary>{escape(words)}</summary>{inside}</details>"


def figure(picture: str, caption: str, title: str = "") -> str:
    """A picture with its caption; `picture` is SVG markup."""
    top = f"<h3>{escape(title)}</h3>" if title else ""
    return f"<figure>{top}{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def cards(figures: Iterable[str], kind: str = "cards") -> str:
    """Figures side by side, as many as fit."""
    return f'<div class="{kind}">{"".join(figures)}</div>'


def side_by_side(left: str, right: str) -> str:
    """Two pictures in one figure."""
    return f'<div class="two">{left}{right}</div>'
