"""`python -m margent`."""

from margent.cli import main

main()
