"""Names may be anything a file system takes, and nothing is written but what was named."""

import os

SHORT = ("--task", "quadratic", "--iterations", 20, "--eval-every", 10)
ODD = "a b é \udcff\n;"
"""Spaces, letters beyond ASCII, a byte that is no text, a line break, and a shell's word."""


def everything(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_odd_names_and_links(sundsbo, mpirun, tmp_path):
    place = tmp_path / "there" / ODD
    place.mkdir(parents=True)
    (tmp_path / "link").symlink_to(place, target_is_directory=True)
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (place / f"{ODD}.npz").symlink_to(precious)
    before = everything(tmp_path)

    def named(suffix):
        return str(tmp_path / "link" / f"{ODD}{suffix}")

    made = sundsbo("topology", "ring", "--agents", 2, "-o", named(".npz"))
    assert made.returncode == 0, made.stderr
    config = tmp_path / "link" / f"{ODD}.toml"
    config.write_text('[run]\nseed = 3\n[output]\nfile = "unused.h5"\n')
    flags = ("--topology", named(".npz"), "--config", config, "--trace", named(".json"))
    result = mpirun(2, *SHORT, *flags, "--output", named(".h5"))
    assert result.returncode == 0, result.stderr
    for reader in (["show"], ["plot", "-o", named(".png")]):
        read = sundsbo(reader[0], named(".h5"), *reader[1:], PYTHONIOENCODING="ascii:strict")
        assert read.returncode == 0, read.stderr
        assert "Traceback" not in read.stderr

    # A link to a file is replaced, and not what lies elsewhere.
    assert precious.read_bytes() == b"precious"
    assert not os.path.islink(named(".npz"))
    written = {f"there/{ODD}/{ODD}{end}" for end in (".h5", ".toml", ".json", ".png")}
    assert everything(tmp_path) == before | written
