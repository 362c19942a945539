"""`wavefilt`, and `python -m wavefilt`."""

import os
import sys

try:
    from wavefilt import interrupts, limits
except KeyboardInterrupt:
    os._exit(130)


def main() -> None:
    """Run the command; a signal while it loads ends it without a traceback."""
    interrupts.end_at_once()
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
