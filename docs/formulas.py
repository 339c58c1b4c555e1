"""Formulas are drawn when the pages are built, so that they show without a network.

Matplotlib sets the TeX (a subset of it: an unknown command ends the build) as outlines, which
become an SVG in the text.  It has the colour of the text, so it is readable in light and in dark,
and the TeX as its label for readers that speak.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes

SIZE = 100.0  # units of an em
FONT = "stix"  # near to the serif fonts of papers; comes with Matplotlib
MARGIN = 4.0  # units around the outlines


def drawn(tex: str) -> str:
    """The formula as SVG markup, whose baseline is that of the text around it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    font = FontProperties(family="STIXGeneral", math_fontfamily=FONT)
    path = TextPath((0, 0), f"${tex}$", size=SIZE, prop=font)
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    parts = []
    for points, code in path.iter_segments(simplify=False):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
        else:
            pairs = zip(points[::2], points[1::2], strict=True)
            parts.append(letters[code] + " ".join(f"{x:.1f} {-y:.1f}" for x, y in pairs))
    box = path.get_extents()
    left, low = box.x0 - MARGIN, box.y0 - MARGIN
    width, height = box.width + 2 * MARGIN, box.height + 2 * MARGIN
    style = (
        f"width:{width / SIZE:.3f}em;height:{height / SIZE:.3f}em;vertical-align:{low / SIZE:.3f}em"
    )
    view = f"{left:.1f} {-(low + height):.1f} {width:.1f} {height:.1f}"
    return (
        f'<svg class="formula" role="img" aria-label="{escape(tex)}" style="{style}" '
        f'viewBox="{view}" fill="currentColor"><path d="{"".join(parts)}"/></svg>'
    )


def inline(writer: Any, node: Any) -> None:
    writer.body.append(drawn(" ".join(node.astext().split())))
    raise nodes.SkipNode


def block(writer: Any, node: Any) -> None:
    tex = " ".join(node.astext().split())
    writer.body.append(f'<div class="formula-block">{drawn(tex)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("drawn", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
