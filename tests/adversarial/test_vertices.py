"""A number of vertices is a few bytes, and asks for terabytes: refused before anything is taken.

The kernel hands out more memory than there is, and kills the process that touches it.  So the child
here has a limit on its addresses: should a look at the number be missing, it gets another error.
"""

from __future__ import annotations

import os

import pytest

from support import run_script

MANY_VERTICES = """
    import resource
    import numpy as np
    import scipy.sparse as sp
    import matchwood as mw
    from matchwood.primitives import assemble, contract, frontier, union_find

    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    room = 16 << 30 if most == resource.RLIM_INFINITY else min(16 << 30, most)
    resource.setrlimit(resource.RLIMIT_AS, (room, most))
    n = 2**40
    edges = n, np.array([[0, 1], [1, 2]]), np.ones(2)
    entries = np.ones(2), (np.array([0, 1]), np.array([1, 2]))
    wide = np.array([0, 2]), np.array([1, 2])
    calls = {name: (lambda name=name: getattr(mw, name)(edges)) for name in (
        "connected_components", "strongly_connected_components", "condensation",
        "maximal_independent_set", "minimum_spanning_forest", "weighted_matching",
        "maximal_matching", "matching_bound", "coarsening_hierarchy", "linear_forest",
        "coverage_of_order", "reverse_cuthill_mckee", "bandwidth",
    )}
    calls |= {
        "bfs": lambda: mw.bfs(edges, 0),
        "degree_factor": lambda: mw.degree_factor(edges, 2),
        "solve": lambda: mw.solve(edges, np.ones(3)),
        "graph": lambda: mw.graph(sp.coo_array(entries, shape=(n, n))),
        "graph of diagonals": lambda: mw.graph(sp.dia_array((np.ones((1, 3)), [1]), shape=(n, n))),
        "write": lambda: mw.io.write("never.mtx", sp.coo_array(entries, shape=(n, 5))),
        "streaming_matching": lambda: mw.streaming_matching([(0, 1, 1.0)], n=n),
        "streaming_matching of one": lambda: mw.streaming_matching([(0, n, 1.0)]),
        "union_find": lambda: union_find.union_find(n, *wide),
        "bitmap_from_queue": lambda: frontier.bitmap_from_queue(wide[1], n),
        "assemble": lambda: assemble.assemble(n, 3, *wide),
        "assemble of columns": lambda: assemble.assemble(3, n, *wide),
        "canonical": lambda: assemble.canonical(*wide, None, n),
        "contract": lambda: contract.contract(np.array([0, 1]), np.array([0]), None, [0], n),
        "Forest": lambda: mw.Forest(np.zeros((0, 2), int), np.zeros(0), 0, n, n).tocsr(),
        **{f"generators.{name}": (lambda name=name: getattr(mw.generators, name)(n))
           for name in ("path", "cycle", "star", "complete")},
        "generators.rmat": lambda: mw.generators.rmat(40),
        "generators.grid": lambda: mw.generators.grid((n, 2)),
        "generators.delaunay": lambda: mw.generators.delaunay(n),
        "generators.random_geometric": lambda: mw.generators.random_geometric(n, degree=3),
        "generators.erdos_renyi": lambda: mw.generators.erdos_renyi(2**31, 2**40),
        "generators.mesh": lambda: mw.generators.mesh((n, 2)),
    }
    for name, call in calls.items():
        try:
            call()
        except mw.OutOfMemory as error:
            if " of memory, " not in str(error) or "needs" not in str(error):
                print(name, "was not refused beforehand:", error)
        except Exception as error:
            print(name, "raised", repr(error))
        else:
            print(name, "went through")
    print("end")
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_more_vertices_than_memory_are_refused_before_anything_is_taken(tmp_path):
    assert run_script(tmp_path, MANY_VERTICES) == "end"
