"""What happened to a run besides its evaluations: that it was resumed, that agents left, ..."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

TRANSPORT = "transport"
"""The kind of an event that says that some messages go another way than the run began with."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Event:
    """Something that a reader of the run's numbers should know.

    Args:
        iteration: Iterations done when it happened.
        kind: One word or two, the same for all events of a sort, such as "resumed".
        sentence: What happened, for people.
        details: More for programs; plain lists, numbers and texts.
        time: When, in UTC.
    """

    iteration: int
    kind: str
    sentence: str
    details: Mapping[str, Any] = field(default_factory=dict)
    time: str = field(default_factory=_now)

    def as_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what ``as_text`` returned.

        Raises:
            ValueError: It is something else.
        """
        try:
            event = cls(**json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"an event of its is not readable ({error})") from error
        kinds = {"iteration": int, "kind": str, "sentence": str, "details": dict, "time": str}
        if not all(isinstance(getattr(event, name), kind) for name, kind in kinds.items()):
            raise ValueError("an event of its has other fields than expected")
        (event.kind + event.sentence + event.time).encode()  # Surrogates cannot be printed.
        return event
