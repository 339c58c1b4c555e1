"""The check of matchings of distributed graphs.  The method: matching/dominant/ranks."""
