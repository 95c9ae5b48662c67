"""Options that several commands have, each written once, and several of them by one decorator.

An option here is given its help where it is used, as that says what it is about in the command:
``@set_option(help="Any setting.")``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])

topology_option = partial(click.option, "--topology", metavar="FILE", type=click.Path())
data_dir_option = partial(click.option, "--data-dir", metavar="DIR", type=click.Path())
task_option = partial(click.option, "--task", metavar="NAME|FILE.py:CLASS")
preset_option = partial(click.option, "--preset", metavar="NAME")
iterations_option = partial(click.option, "--iterations", type=int, metavar="K")
set_option = partial(click.option, "--set", "sets", multiple=True, metavar="TABLE.KEY=VALUE")
print_config_option = partial(click.option, "--print-config", is_flag=True)
file_option = partial(click.option, "--output", metavar="FILE.h5", type=click.Path())
folder_option = partial(
    click.option, "--out", metavar="DIR", type=click.Path(path_type=Path, file_okay=False)
)
overwrite_option = partial(click.option, "--overwrite", is_flag=True)
runs_argument = click.argument(
    "runs", metavar="RUN.h5...", nargs=-1, required=True, type=click.Path()
)


def flags(*options: Callable[[C], C]) -> Callable[[C], C]:
    """Return what gives a command these options of click, in this order in its help."""
    return lambda command: reduce(lambda found, option: option(found), reversed(options), command)
