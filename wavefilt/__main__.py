"""`wavefilt`, and `python -m wavefilt`."""

import os

try:
    from wavefilt import interrupts
except KeyboardInterrupt:
    os._exit(130)


def main() -> None:
    """Run the command; a signal while it loads ends it without a traceback."""
    interrupts.end_at_once()
    from wavefilt import cli

    cli.main()


if __name__ == "__main__":  # spawned processes import this module as well
    main()
