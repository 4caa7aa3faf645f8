"""`python -m enbloc` is `enbloc`."""

from enbloc.cli.main import main

main()
