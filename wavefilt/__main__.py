"""`wavefilt`, and `python -m wavefilt`."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command; a signal while it loads ends it without a traceback."""
    try:
        from wavefilt import interrupts

        interrupts.obey(interrupts.leave)
    except KeyboardInterrupt:
        os._exit(130)
    from wavefilt import cli

    cli.main()


if __name__ == "__main__":  # spawned processes import this module as well
    main()
