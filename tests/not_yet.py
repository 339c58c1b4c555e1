"""What does not keep the rules of the house yet.

These lists only shrink.  An entry that is no longer needed makes its test fail, so it has to be
taken off; nothing may be added.
"""

# files that load another problem's engine by its name
IMPORTS = {
    "ordering/rcm/gpu_start.py",
}

# folders with more files than one can look over
FOLDERS = {
    "factors",
    "forests",
    "matching",
    "ordering/rcm",
    "spanning/forest",
    "tridiagonal",
}

# functions with too many arguments
FUNCTIONS = {
    "components/strong/cpu.py: _largest",
    "components/strong/cpu.py: _tasks",
    "components/strong/cpu_reach.py: reach",
    "components/strong/cpu_tasks.py: task_rounds",
    "factors/cpu.py: _rounds",
    "forests/cpu_cycles.py: _survey_on",
    "forests/cpu_cycles.py: resolve",
    "forests/cpu_ranges.py: _rest",
    "matching/dominant/cpu.py: _match",
    "matching/greedy/cpu.py: _collect",
    "matching/proposal/cpu.py: _rounds",
    "networkx_backend/memory/cpu.py: read_values",
    "ordering/rcm/cpu_batch.py: _alone",
    "ordering/rcm/cpu_batch.py: order_batch",
    "ordering/rcm/cpu_batch_basic.py: order_batch_basic",
    "ordering/rcm/cpu_batch_work.py: discover",
    "ordering/rcm/cpu_leveled.py: _settle",
    "ordering/rcm/cpu_leveled.py: order_leveled",
    "ordering/rcm/cpu_serial.py: component",
    "ordering/rcm/cpu_serial.py: follow",
    "ordering/rcm/cpu_serial.py: order_serial",
    "ordering/rcm/cpu_serial.py: walk",
    "ordering/rcm/cpu_unordered.py: order_unordered",
    "primitives/sort/cpu.py: _sort",
    "spanning/forest/cpu_boruvka.py: _boruvka",
    "spanning/forest/cpu_boruvka.py: _list_edges",
    "spanning/forest/cpu_stars.py: _stars",
    "tridiagonal/block/cpu.py: _substitute",
    "tridiagonal/cpu.py: _substitute",
}

# private names of other modules in use
PRIVATE = {
    "cli/graphs/mst.py: _quoted",
    "components/strong/quotient/check.py: _data",
    "forests/check.py: _mean_weights",
    "krylov/problem.py: _sparse",
    "matching/coarsening/__init__.py: _data",
    "matching/coarsening/__init__.py: _values",
    "matching/result.py: _data",
    "matching/result.py: _indices",
    "matching/result.py: _indptr",
    "ordering/permutation/__init__.py: _data",
    "ordering/permutation/__init__.py: _indices",
    "ordering/permutation/__init__.py: _indptr",
    "ordering/permutation/__init__.py: _structure",
    "ordering/permutation/check.py: _with_values",
    "ordering/rcm/check.py: _starts",
    "spanning/forest/costs.py: _checked_values",
    "spanning/forest/costs.py: _indices",
    "spanning/forest/costs.py: _indptr",
    "spanning/forest/costs.py: _joined",
    "spanning/forest/costs.py: _read",
    "spanning/forest/costs.py: _rule",
    "spanning/forest/costs.py: _source",
    "spanning/forest/costs.py: _structure",
    "spanning/forest/costs.py: _values",
}

# names that several CUDA headers define
HEADERS: set[str] = set()
