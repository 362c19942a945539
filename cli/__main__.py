"""`python -m wavefilt.cli`."""

from wavefilt.cli import main

main()
