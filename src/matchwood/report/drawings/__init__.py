"""Pictures of small graphs and of answers, as SVG: svg.py draws, pictures.py has what all share,
sketches.py says what a sketch is; one file for each family of problems."""
