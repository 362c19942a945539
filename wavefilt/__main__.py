"""`python -m wavefilt`, the same as `wavefilt`."""

from wavefilt.cli import main

if __name__ == "__main__":  # spawned processes import this module as well
    main()
