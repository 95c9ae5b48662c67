"""``sundsbo-mpi data``: find, check and fetch data sets."""

from __future__ import annotations

import sys

import click

from sundsbo_mpi.cli.flags import data_dir_option
from sundsbo_mpi.cli.named import Named


class _ListByDefault(Named):
    """A group whose command ``list`` may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` in front of flags that are not the group's own."""
        alone = not args and not ctx.resilient_parsing
        if alone or (args and args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


_data_dir = data_dir_option(help="Directory laid out as torchvision does.")


@click.group(name="data", cls=_ListByDefault, kind="command of data")
def command() -> None:
    """Find, check and fetch data sets ('list' may be left out).

    \b
    sundsbo-mpi data --data-dir data
    sundsbo-mpi data fetch fashion-mnist --data-dir data
    """  # noqa: D301  (click takes the character \b, not a backslash)


@command.command(name="list")
@_data_dir
def list_(data_dir: str | None) -> None:
    """Say what is found, and whether it is what was published.

    \b
    sundsbo-mpi data list --data-dir data

    verified: every file has the published checksum; complete: all images are there, but stored in
    a form for which no checksum is published; incomplete: used with a note; corrupt: refused.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from rich.table import Table

    from sundsbo_mpi.datasets.survey import SURVEYED, survey
    from sundsbo_mpi.texttable import console

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("data set", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("where and remarks", overflow="fold")
    for name in SURVEYED:
        found = survey(name, data_dir)
        remarks = [remark.partition(": ")[0] for remark in found.remarks]
        table.add_row(name, found.state, "\n".join((*found.where, *remarks)))
    console().print(table, markup=False)
    click.echo("'sundsbo-mpi data fetch NAME --data-dir DIR' fetches what is not as published.")


@command.command()
@click.argument("name")
@_data_dir
def check(name: str, data_dir: str | None) -> None:
    """Read a data set as a run would, or 'folder' for a directory of class folders.

    \b
    sundsbo-mpi data check mnist --data-dir data

    One that is missing or damaged is refused with exit status 2.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.data_notes import noted
    from sundsbo_mpi.datasets.survey import check as read

    with noted() as notes:
        sentence = read(name, data_dir)
    for note in notes:
        click.echo(note, err=True)
    click.echo(sentence)


@command.command()
@click.argument("name")
@data_dir_option(required=True, help="Where to store the files.")
@click.option("--mirror", metavar="URL", help="Directory to fetch from, instead of the public one.")
def fetch(name: str, data_dir: str, mirror: str | None) -> None:
    """Fetch a data set that is missing, incomplete or damaged.

    \b
    sundsbo-mpi data fetch mnist --data-dir data

    Checksums are compared before a file gets its name.  Proxies are taken from HTTPS_PROXY.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.datasets.fetching import fetch as get

    written = get(name, data_dir, mirror, progress=sys.stderr.isatty())
    for path in written:
        click.echo(f"wrote {path}")
    if not written:
        click.echo(f"{name} is in {data_dir} already.")
