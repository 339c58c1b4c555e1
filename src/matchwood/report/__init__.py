"""What the demo, the benchmarks and the command line show: problems side by side with SciPy.

problems.py is the list of problems (a new one is one entry there), scenes.py the graphs they run
on, timing.py how times are compared.  sketches.py, pictures.py and svg.py draw, page.py and show.py
make the tables and the HTML page; demo.py and bench.py put it all together.  traffic.py, joins.py
and orders.py make the pages of `matchwood sense`, `join` and `order`, all by page.py.  Nothing in
the library imports this package.
"""
