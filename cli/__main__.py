"""`python -m wavefilt.cli`, the same as `wavefilt`."""

from wavefilt.__main__ import main

if __name__ == "__main__":  # processes that are spawned load this module as well
    main()
