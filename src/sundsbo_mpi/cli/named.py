"""Groups of commands in which a misspelt name is answered with the nearest one."""

from __future__ import annotations

from typing import Any

import click

from sundsbo_mpi.errors import unknown


class Named(click.Group):
    """A group that offers the nearest name for an unknown one.

    Args:
        kind: What its commands are called in messages.
    """

    def __init__(self, *args: Any, kind: str, **others: Any) -> None:
        super().__init__(*args, **others)
        self._kind = kind

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Look a command up; None for an unknown one while a shell asks for completions."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if ctx.resilient_parsing:
            return None
        raise unknown(self._kind, cmd_name, self.commands)
