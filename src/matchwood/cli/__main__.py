"""`python -m matchwood.cli` is the program `matchwood`."""

from matchwood.cli import main

main()
