"""How the pages are built.  `make docs` runs this with warnings as errors; nothing is fetched."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pictures  # noqa: E402

import matchwood  # noqa: E402

project = "matchwood"
author = "matchwood contributors"
copyright = author
version = release = matchwood.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "formulas",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/**/*.py", "auto_examples/**/*.ipynb"]
default_role = "py:obj"  # a link where the name is known, else just code

html_math_renderer = "drawn"  # formulas.py
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["matchwood.css"]
html_title = "matchwood"
html_show_sourcelink = False
html_scaled_image_link = False
html_context = {"default_mode": "auto"}  # light or dark as the system; the theme complains of none
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 3,  # more would need a second line at 1200 pixels
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "install": [], "tour": [], "concepts": [], "architecture": []}

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times belong into benchmarks
    "write_computation_times": False,
    "remove_config_comments": True,
}

warnings.filterwarnings("ignore", message=".*non-interactive.*")


def setup(app: Any) -> None:
    """Draw the pictures of the problem pages before the pages are read."""
    pictures.draw(HERE / "_build" / "pictures")
