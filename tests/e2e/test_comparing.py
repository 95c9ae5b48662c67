"""Two runs of the same problem put beside one another by the command."""

from programs import assert_refused


def test_two_runs_beside_one_another(mpirun, sundsbo, network, tmp_path):
    flags = ("--topology", network(2), "--task", "quadratic", "--iterations", 6, "--eval-every", 3)
    for technique in ("se", "gt"):
        done = mpirun(
            2, *flags, "--algorithm", f"sun-dsbo-{technique}", "--output", f"{technique}.h5"
        )
        assert done.returncode == 0, done.stderr
    shown = sundsbo("compare", "se.h5", "gt.h5", "--csv", "a.csv", "--png", "a.png")
    assert shown.returncode == 0, shown.stderr
    assert "1 sun-dsbo-se" in shown.stdout
    assert "2 sun-dsbo-gt" in shown.stdout
    assert "payload bytes (B)" in shown.stdout
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_read_is_refused_in_a_sentence(sundsbo, tmp_path):
    (tmp_path / "odd.h5").write_text("odd")
    result = sundsbo("compare", "odd.h5", "missing.h5")
    assert_refused(result, "'odd.h5' cannot be read as an HDF5 file")
    assert "there is no run file 'missing.h5'" in result.stderr
