"""`python -m wavefilt.cli`, the same as `wavefilt`."""

from wavefilt import interrupts
from wavefilt.cli import main

if __name__ == "__main__":  # processes that are spawned load this module as well
    interrupts.end_at_once()
    main()
