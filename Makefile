# Everything is set up here, in a virtual environment of its own; only Python and a package index
# are needed.  The second time is quick: a stamp says what is installed for which pyproject.toml.
#
#   make demo         run every problem on a graph, check and compare; writes demo.html
#   make test         the quick tests;  make test-slow  those of more than half a second;  make test-all  both
#   make kernels      compile all kernels, and install them into the environment: then nothing is compiled at first use
#   make test-networkx  those of NetworkX that concern our backend, run through it; part of test
#   make test-bounds  the tests of kernels, with every index checked; compiles them all again
#   make attack       the searches for faults, SECONDS=600 each; then SPOILED=100000 wrong answers of each problem
#   make lint         ruff and mypy
#   make lists        all lists that are made from registry.py: pages for type checkers, README's table, API rows
#   make bench        all benchmarks, with the peers that have wheels here; writes JSON
#   make turns        every function timed against a commit (OLD=...), or against the record of this kind of machine
#   make docs         the pages, in docs/_build/html
#   make clean        remove the environment and everything made

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
# Bytecode is made of what is imported, when it is: half of the time saved.
INSTALL := $(PY) -m pip --disable-pip-version-check --quiet install --no-compile
PEERS := networkit igraph
WORKERS ?= 2
GPU_WORKERS ?= 8
NETWORKX_TESTS := $(addprefix networkx.algorithms., components tests.test_mis tests.test_matching \
	bipartite.tests.test_matching community.tests.test_louvain community.tests.test_leiden community.tests.test_quality \
	community.tests.test_label_propagation \
	tree.tests.test_mst traversal.tests.test_bfs shortest_paths.tests.test_unweighted \
	shortest_paths.tests.test_generic tests.test_dag \
	link_analysis.tests.test_pagerank)
SECONDS ?= 600
SPOILED ?= 100000
ATTACK_LOG := $(CURDIR)/.attack.log
# Every folder whose tests run kernels; adversarial calls all public functions with wrong arrays, and
# all that rely on symmetry with patterns that have none.
BOUNDS_TESTS := $(addprefix tests/, adversarial beyond communities components dist factors forests generators \
	independent io join krylov matching networkx_backend ordering preconditioners primitives ranking sensing spanning \
	teams traversal tridiagonal test_checks.py test_csr.py test_gate.py test_memory.py test_rectangles.py)
# They call everything from one process, so they wait until the others have compiled it.
BOUNDS_LAST := $(addprefix tests/adversarial/, test_false_symmetry.py test_wrong_arrays.py)

.DEFAULT_GOAL := help
.PHONY: help demo kernels test test-all test-networkx test-slow test-bounds bounds-tests attack test-gpu lint mypy format lists bench turns docs clean

help:
	@sed -n 's/^#   //p' Makefile

$(PY):
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(PY)
	$(INSTALL) -e .
	@touch $@

# One stamp for each extra.
$(VENV)/.test $(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(PY)
	$(INSTALL) -e ".[$*]"
	@touch $@

# Wheels only: some peers build for twenty minutes.  One without a wheel is left out.
$(VENV)/.bench: $(VENV)/.core
	@for peer in $(PEERS); do \
		$(INSTALL) --only-binary :all: $$peer || echo "no wheel of $$peer here, left out"; \
	done
	@touch $@

demo: $(VENV)/.core
	$(VENV)/bin/matchwood demo

# For this processor alone.  Without --level a wheel has libraries for all of its kind.
kernels: $(VENV)/.core
	$(PY) -m matchwood.machine.kernels wheel --level own build/kernels
	$(INSTALL) --no-deps --no-index --force-reinstall build/kernels/matchwood_kernels-*.whl

# Many processes are started; each would compile all files where bytecode is not kept.
demo kernels test test-slow test-gpu: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.test
	$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
	$(MAKE) test-networkx

# Nothing may fail, and each of our functions must have been called; see the plugin named here.
test-networkx: $(VENV)/.test
	NETWORKX_TEST_BACKEND=matchwood NETWORKX_FALLBACK_TO_NX=True $(PY) -m pytest \
		-c /dev/null --rootdir=$(VENV) --confcutdir=$(VENV) -q -rxX -p no:cacheprovider \
		-p matchwood.networkx_backend.testing --pyargs $(NETWORKX_TESTS)

test-slow: $(VENV)/.test
	$(PY) -m pytest -m slow -n $(WORKERS) --dist loadfile

test-all: test test-slow

test-bounds: $(VENV)/.test
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest $(BOUNDS_TESTS) $(addprefix --ignore=, $(BOUNDS_LAST)) \
		-n $(WORKERS) --dist loadfile -m "not gpu"
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest $(BOUNDS_LAST) -m "not gpu" -n $(WORKERS) --dist loadfile

bounds-tests:
	@echo $(BOUNDS_TESTS)

attack: $(VENV)/.test
	rm -f $(ATTACK_LOG)
	MATCHWOOD_ATTACK_SECONDS=$(SECONDS) MATCHWOOD_ATTACK_LOG=$(ATTACK_LOG) \
		$(PY) -m pytest tests/adversarial -m "not gpu" -n $(WORKERS) --dist loadfile
	$(PY) tests/adversarial/clock.py $(ATTACK_LOG)
	PYTHONPATH=tests $(PY) tests/adversarial/spoiled_answers.py $(SPOILED) $(WORKERS)

test-gpu: $(VENV)/.test
	$(PY) -m pytest -m gpu -n $(GPU_WORKERS) --dist worksteal

lint: $(VENV)/.dev mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

mypy: $(VENV)/.dev
	$(PY) -m mypy

format: $(VENV)/.dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lists: $(VENV)/.core
	$(PY) docs/lists.py

bench: $(VENV)/.bench
	$(PY) -m bench.run

turns: $(VENV)/.core
	$(PY) -m bench.turns $(if $(OLD),--old $(OLD))

docs: $(VENV)/.docs
	$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/auto_examples .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
