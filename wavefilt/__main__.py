"""`wavefilt`, and `python -m wavefilt`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command; a signal while it loads ends it without a traceback."""
    try:
        from wavefilt import interrupts, limits

        interrupts.end_at_once()
    except KeyboardInterrupt:
        os._exit(130)
    if sys.stderr is not None:
        from wavefilt.messages import messages

        sys.stderr = messages(sys.stderr)
    try:
        limits.need((128 + 16 * (os.cpu_count() or 1)) * limits.MIB)  # most of it for NumPy, which starts threads
        from wavefilt import cli
    except Exception as error:
        if not limits.out_of_memory(error):
            raise
        sys.exit("wavefilt: error: not enough memory")
    cli.main()


if __name__ == "__main__":  # spawned processes import this module as well
    main()
