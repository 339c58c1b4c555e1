"""CUDA text of a test, in a package of its own."""

from __future__ import annotations

import pytest

from matchwood.engines import gpu
from matchwood.engines.gpu.source import SOURCES


@pytest.fixture
def make_source(tmp_path, monkeypatch):
    """A function that writes CUDA text into a package and gives its Source; forgotten then."""
    made = []

    def make(text, kernels, **options):
        name = f"cuda_text_{len(made)}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "gpu.cu").write_text(text)
        made.append((name, "gpu.cu"))
        return gpu.Source(name, "gpu.cu", kernels, **options)

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    for key in made:
        SOURCES.pop(key, None)
