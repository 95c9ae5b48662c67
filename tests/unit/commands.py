"""All commands of the program, and what becomes of a command line before it is carried out."""

import click

from sundsbo_mpi.cli import sundsbo_mpi


def every_command(command=sundsbo_mpi, parent=None):
    """Return (words, command) for every command and group, the program itself first."""
    ctx = click.Context(command, info_name=command.name, parent=parent)
    words = ctx.command_path.split()[1:]
    found = [(words, command)]
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found += every_command(command.get_command(ctx, name), ctx)
    return found


def options(command):
    """Return the long names of a command's options."""
    ctx = click.Context(command)
    params = [p for p in command.get_params(ctx) if isinstance(p, click.Option)]
    return [name for p in params for name in p.opts if name.startswith("--")]


def parsed(words, monkeypatch):
    """Parse a command line as the program does; return the context of the command that it names."""
    met = []
    with monkeypatch.context() as patched:
        patched.setattr(click.Command, "invoke", lambda _self, ctx: met.append(ctx))
        sundsbo_mpi.main([str(word) for word in words], "sundsbo-mpi", standalone_mode=False)
    return met[-1]
