"""`python -m wavefilt`: the command."""

from wavefilt.cli import main

if __name__ == "__main__":  # processes that are spawned load this module as well
    main()
