"""What a command has printed."""


def line(text: str, start: str) -> str:
    """Return the only line that starts so, with single spaces."""
    (found,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    return " ".join(found.split())
