"""Curves of several runs: one metric against iterations, seconds and bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.summary import direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sundsbo_mpi.runfile import RunData

# Okabe and Ito (2008), "Color Universal Design", without black, and without yellow for its low
# contrast on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PANELS = ("iterations", "seconds of training", "bytes sent per agent (payload, mean)")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
NOT_IN_LABELS = {"save_final", "data_dir", "device", "eval_every", "max_walltime"}
MOST_IN_LABEL = 3
PICTURES = (".png", ".pdf", ".svg")


def draw_runs(runs: Sequence[RunData], metric: str | None, output: Path) -> None:
    """Draw one metric of the runs in three panels and save the picture.

    The axes are iterations, seconds of training, and payload bytes that an agent has sent on
    average.  A dashed line beside a curve shows the mean over the agents of their own models.

    Raises:
        UsageError: matplotlib is missing, a run has no rows, the runs share no metric, or the
            picture cannot be saved.
    """
    check_picture(output)
    name = choose_metric(runs, metric)
    figure = new_figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    prepare(panels)
    panels[0].set_ylabel(axis_label(name))
    if positive(runs, name):
        panels[0].set_yscale("log")
    for number, (run, label) in enumerate(zip(runs, labels(runs), strict=True)):
        _draw(panels, run, name, {"label": label, **style(number)})
    _legend(figure, panels[0], dashed=any(f"{name}_local" in run.curves for run in runs))
    save_picture(figure, output)


def new_figure(**options: Any) -> Figure:
    """Make an empty figure that belongs to no window.

    Raises:
        UsageError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "drawing needs matplotlib, which is not installed: run pip install 'sundsbo-mpi[plot]'."
        ) from None
    return Figure(**options)


def prepare(panels: Sequence[Axes]) -> None:
    """Label three panels, one for each of ``PANELS``."""
    from matplotlib.ticker import EngFormatter

    for axes, xlabel in zip(panels, PANELS, strict=True):
        axes.set_xlabel(xlabel)
        axes.locator_params(axis="x", nbins=5, integer=xlabel == PANELS[0])
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[2].xaxis.set_major_formatter(EngFormatter(unit="B"))


def check_picture(output: str | Path) -> None:
    """Refuse a name that does not say the kind of picture, to which matplotlib would add one.

    Raises:
        UsageError: The suffix is none of ``PICTURES``.
    """
    suffix = Path(output).suffix
    if suffix.lower() not in PICTURES:
        raise UsageError(
            f"cannot save '{output}': its suffix is '{suffix}', expected one of "
            f"{', '.join(PICTURES)}; change the name."
        )


def save_picture(figure: Figure, output: str | Path, *, bbox: str | None = None) -> None:
    """Save the picture under exactly the name that ``check_picture`` let pass.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        figure.savefig(output, dpi=150, bbox_inches=bbox)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot save '{output}': {reason}; choose another name.") from error


def choose_metric(runs: Sequence[RunData], wanted: str | None) -> str:
    """Return the metric to draw: the ``wanted`` one, or accuracy, or an error, or a loss.

    Raises:
        UsageError: A run has no rows, or not all runs have the metric.
    """
    for run in runs:
        if not run.rows:
            raise UsageError(f"'{run.path}' has no evaluation yet: wait for its first row.")
    shared = [name for name in runs[0].curves if all(_known(run, name) for run in runs)]
    if wanted is not None:
        if wanted not in shared:
            raise unknown("metric of all these runs", wanted, shared)
        return wanted
    of_task = [name for name in shared if name in runs[0].task and not name.endswith("_local")]
    for word in ("accuracy", "error", "loss", ""):
        for name in of_task:
            if word in name:
                return name
    raise UsageError("these runs have no task metric in common: name one with --metric.")


def labels(runs: Sequence[RunData]) -> list[str]:
    """Name each run by its algorithm and by what sets it apart from the others.

    Where that is too much to read, or nothing, the file's name is taken.
    """
    named = short_labels(runs)
    if len(set(named)) == len(runs):
        return named
    return [f"{run.attributes.get('algorithm', 'run')} ({run.path.stem})" for run in runs]


def short_labels(runs: Sequence[RunData]) -> list[str]:
    """Name each run by its algorithm and, unless that is too much to read, by its settings.

    Several runs may get the same name.
    """
    settings = [flatten(run.config) for run in runs]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    algorithms = [str(run.attributes.get("algorithm", "run")) for run in runs]
    differing = [key for key in keys if _sets_apart(key, settings, algorithms)]
    if len(differing) > MOST_IN_LABEL:
        return algorithms
    return [
        ", ".join([name] + [_said(key, setting) for key in differing if _said(key, setting)])
        for name, setting in zip(algorithms, settings, strict=True)
    ]


def _said(key: str, setting: dict[str, str]) -> str:
    """Say a setting in a label; one that is unset says nothing."""
    value = setting.get(key, "null")
    return "" if value == "null" else f"{key.rpartition('.')[2]} {value}"


def axis_label(metric: str) -> str:
    """Return the metric as words, with its unit where that is known."""
    words = metric.replace("_", " ")
    return f"{words} (%)" if "accuracy" in metric else words


def _known(run: RunData, name: str) -> bool:
    return name in run.curves and bool(np.isfinite(run.curves[name]).any())


def positive(runs: Sequence[RunData], name: str) -> bool:
    """Say whether a metric belongs on a logarithmic axis: less is better, or a consensus error."""
    if direction(name) >= 0 and "/" not in name:
        return False
    values = np.concatenate([run.curves[name] for run in runs])
    return bool((values[np.isfinite(values)] > 0).any())


def flatten(config: Any, prefix: str = "") -> dict[str, str]:
    """Return a configuration as text by dotted key."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat


def _sets_apart(key: str, settings: list[dict[str, str]], algorithms: list[str]) -> bool:
    table, _, name = key.rpartition(".")
    found = [setting.get(key) for setting in settings]
    says_something = table != "output" and name not in NOT_IN_LABELS
    return says_something and len(set(found)) > 1 and found != algorithms


def style(number: int) -> dict[str, Any]:
    """Return the look of a curve by its number: neighbours differ in colour and in marker."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.6,
    }


def _draw(panels: Sequence[Axes], run: RunData, name: str, style: dict[str, Any]) -> None:
    sent = run.agents["bytes_payload"].mean(axis=1)
    local = run.curves.get(f"{name}_local")
    every = max(run.rows // 12, 1)
    for axes, ticks in zip(panels, (run.iteration, run.elapsed_s, sent), strict=True):
        axes.plot(ticks, run.curves[name], markevery=every, **style)
        if local is not None:
            axes.plot(ticks, local, color=style["color"], linewidth=1, linestyle="--")


def _legend(figure: Any, axes: Axes, *, dashed: bool) -> None:
    handles, names = axes.get_legend_handles_labels()
    if dashed:
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color="0.4", linewidth=1, linestyle="--"))
        names.append("dashed: mean of the agents' own models")
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(len(names), 3), frameon=False
    )
