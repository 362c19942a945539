"""`wavefilt bench report`: the studies' JSON as one page."""

from __future__ import annotations

from pathlib import Path

import click

from wavefilt.cli.failure import Failure

PAGE = click.Path(dir_okay=False, path_type=Path)


@click.command("report", epilog="Example: wavefilt bench report scaling.json cpu.json -o report.html")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE.json]...")
@click.option("-o", "--output", type=PAGE, required=True, metavar="FILE.html", help="The page; it may be replaced.")
def command(files: tuple[Path, ...], output: Path) -> None:
    """One HTML page of what studies measured: tables that sort, plots that tell their numbers.

    Without files, those of this library's own measurements, in a checkout of it.
    """
    from wavefilt.benchmarks.report import page as report_page
    from wavefilt.benchmarks.report import sections as report
    from wavefilt.io import write_atomically
    from wavefilt.plot import check_target

    if not files:
        files = tuple(sorted(report.RESULTS.glob("*.json")))
    if not files:
        raise click.UsageError(
            "no files, and no results of the library's own here; wavefilt bench cpu, cuda, scaling, laplace1d and "
            "laplace2d and wavefilt ske validate write some with --json FILE"
        )
    if output.resolve() in [path.resolve() for path in files]:
        raise click.UsageError(f"{output} is one of the files to read")
    try:
        check_target("plots.svg")  # that there is matplotlib
        sections = report.sections(files)
        page = report_page.page(sections)
    except report.NotAStudy as error:
        raise Failure(str(error), 3) from error
    except ImportError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror or error}", 3) from error
    write_atomically(output, page.encode(), overwrite=True)
    click.echo(f"{output}: {', '.join(section.source for section in sections)}")
