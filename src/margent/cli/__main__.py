"""`python -m margent.cli`."""

from margent.cli import main

main()
