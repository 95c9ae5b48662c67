"""``sundsbo-mpi data``: find, check and fetch data sets."""

from __future__ import annotations

import sys

import click

from sundsbo_mpi.errors import unknown


class _ListByDefault(click.Group):
    """A group whose command ``list`` may be left out, and which offers the nearest name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` in front of flags that are not the group's own."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            raise unknown("command of data", cmd_name, self.commands)
        return self.commands[cmd_name]


_data_dir = click.option(
    "--data-dir", metavar="DIR", help="Directory laid out as torchvision does."
)


@click.group(name="data", cls=_ListByDefault)
def command() -> None:
    """Find, check and fetch data sets ('list' may be left out)."""


@command.command(name="list")
@_data_dir
def list_(data_dir: str | None) -> None:
    """Say what is found, and whether it is what was published.

    verified: every file has the published checksum; complete: all images are there, but stored in
    a form for which no checksum is published; incomplete: used with a note; corrupt: refused.
    """
    from rich.console import Console
    from rich.table import Table

    from sundsbo_mpi.datasets.survey import SURVEYED, survey

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("data set", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("where and remarks", overflow="fold")
    for name in SURVEYED:
        found = survey(name, data_dir)
        remarks = [remark.partition(": ")[0] for remark in found.remarks]
        table.add_row(name, found.state, "\n".join((*found.where, *remarks)))
    Console(highlight=False, markup=False).print(table)
    click.echo("'sundsbo-mpi data fetch NAME --data-dir DIR' fetches what is not as published.")


@command.command()
@click.argument("name")
@_data_dir
def check(name: str, data_dir: str | None) -> None:
    """Read a data set as a run would, or 'folder' for a directory of class folders.

    One that is missing or damaged is refused with exit status 2.
    """
    import warnings

    from sundsbo_mpi.datasets.survey import check as read
    from sundsbo_mpi.errors import DataNote

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", DataNote)
        sentence = read(name, data_dir)
    for note in notes:
        click.echo(note.message, err=True)
    click.echo(sentence)


@command.command()
@click.argument("name")
@click.option("--data-dir", required=True, metavar="DIR", help="Where to store the files.")
@click.option("--mirror", metavar="URL", help="Directory to fetch from, instead of the public one.")
def fetch(name: str, data_dir: str, mirror: str | None) -> None:
    """Fetch a data set that is missing, incomplete or damaged.

    Checksums are compared before a file gets its name.  Proxies are taken from HTTPS_PROXY.
    """
    from sundsbo_mpi.datasets.fetching import fetch as get

    written = get(name, data_dir, mirror, progress=sys.stderr.isatty())
    for path in written:
        click.echo(f"wrote {path}")
    if not written:
        click.echo(f"{name} is in {data_dir} already.")
