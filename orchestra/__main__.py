"""`python -m orchestra` is the same as `orchestra`."""

from orchestra.cli import main

main()
