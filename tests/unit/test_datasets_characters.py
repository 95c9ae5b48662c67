import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image
from stored_data import omniglot_set, picture, zipped

from sundsbo_mpi.datasets import load_characters
from sundsbo_mpi.errors import DataNote, UsageError


def parts(characters):
    return characters.train, characters.validation, characters.test


@pytest.fixture
def omniglot(monkeypatch, tmp_path):
    omniglot_set(monkeypatch, tmp_path / "omniglot-py")
    return tmp_path


def test_omniglot_is_read_and_divided(omniglot):
    found = load_characters("omniglot", str(omniglot), seed=0, size=7)
    assert [len(part) for part in parts(found)] == [6, 2, 2]
    assert found.shape == (1, 7, 7)
    for part in parts(found):
        assert all(drawn.shape == (4, 49) and drawn.dtype == np.uint8 for drawn in part)
    evaluation = [part.tobytes() for part in (*found.validation, *found.test)]
    assert len(set(evaluation)) == 4
    other = load_characters("omniglot", str(omniglot), seed=1, size=7)
    assert [c.tobytes() for c in other.train] == [c.tobytes() for c in found.train]
    splits = {
        tuple(c.tobytes() for c in load_characters("omniglot", str(omniglot), s, 7).test)
        for s in range(6)
    }
    assert len(splits) > 1


def test_ink_is_255(omniglot):
    place = omniglot / "omniglot-py" / "images_background" / "Aleph" / "character00"
    paper = np.full((105, 105), 255, np.uint8)
    paper[:, :15] = 0  # four of 28 columns
    Image.fromarray(paper).convert("1").save(place / "00.png")
    found = load_characters("omniglot", str(omniglot), seed=0)
    image = found.train[0][0].reshape(28, 28)
    assert (image[:, :3] == 255).all()
    assert (image[:, 6:] == 0).all()


def test_archives_are_read_as_they_are(omniglot):
    folders = load_characters("omniglot", str(omniglot), seed=0, size=5)
    for part in ("images_background", "images_evaluation"):
        content = zipped(omniglot / "omniglot-py" / part)
        shutil.rmtree(omniglot / "omniglot-py" / part)
        (omniglot / f"{part}.zip").write_bytes(content)
    archives = load_characters("omniglot", str(omniglot), seed=0, size=5)
    for one, other in zip(parts(folders), parts(archives), strict=True):
        np.testing.assert_array_equal(np.stack(one), np.stack(other))


def test_an_incomplete_omniglot_is_used_with_a_sentence(omniglot):
    (omniglot / "omniglot-py/images_evaluation/Aleph/character01/03.png").unlink()
    with pytest.warns(DataNote, match="images_evaluation has 15 of 16 images and 4 of 4"):
        found = load_characters("omniglot", str(omniglot), seed=0)
    assert sorted(len(c) for c in (*found.validation, *found.test)) == [3, 4, 4, 4]


def test_a_missing_part_of_omniglot_is_named(omniglot):
    shutil.rmtree(omniglot / "omniglot-py" / "images_evaluation")
    with pytest.raises(UsageError, match=r"images_evaluation or archive .* was not found") as error:
        load_characters("omniglot", str(omniglot), seed=0)
    assert "data fetch omniglot" in str(error.value)
    with pytest.raises(UsageError, match="--data-dir was not given"):
        load_characters("omniglot", None, seed=0)


def test_too_many_characters_are_refused(omniglot):
    place = omniglot / "omniglot-py" / "images_evaluation"
    shutil.copytree(place / "Aleph", place / "Gimel")
    with pytest.raises(UsageError, match="has 6 characters"):
        load_characters("omniglot", str(omniglot), seed=0)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"x" * 80])
def test_a_damaged_picture_is_refused(omniglot, damage):
    path = omniglot / "omniglot-py/images_background/Aleph/character01/02.png"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match=r"02\.png is not a picture that can be read"):
        load_characters("omniglot", str(omniglot), seed=0)


def test_damaged_archives_are_refused(omniglot):
    place = omniglot / "omniglot-py"
    content = bytearray(zipped(place / "images_background"))
    shutil.rmtree(place / "images_background")
    archive = place / "images_background.zip"
    archive.write_bytes(content[: len(content) // 2])
    with pytest.raises(UsageError, match="is not an archive"):
        load_characters("omniglot", str(omniglot), seed=0)
    content[content.index(b"IDAT") + 20] ^= 1
    archive.write_bytes(content)
    with pytest.raises(UsageError, match="is not a picture that can be read"):
        load_characters("omniglot", str(omniglot), seed=0)


@pytest.mark.parametrize("top", ["", "another/"])
def test_an_archive_of_another_folder_is_refused(omniglot, top):
    place = omniglot / "omniglot-py"
    with zipfile.ZipFile(place / "images_background.zip", "w") as archive:
        archive.write(place / "images_background/Aleph/character01/02.png", f"{top}a/b/02.png")
    with pytest.raises(UsageError, match=r"images_background\.zip has 0 characters"):
        load_characters("omniglot", str(omniglot), seed=0)


@pytest.mark.parametrize("name", ["omniglot", "folder"])
def test_a_directory_that_cannot_be_looked_into_is_refused(name):
    with pytest.raises(UsageError, match=r"was not found|is not a directory that can be read"):
        load_characters(name, 5000 * "x", seed=0)


def put_pictures(directory, classes, images=3, mode="RGB", suffix=".jpg"):
    rng = np.random.default_rng(8)
    for name in classes:
        (directory / name).mkdir(parents=True)
        for number in range(images):
            picture(rng, (20, 14), mode).save(directory / name / f"{number}{suffix}")


def test_divided_folders_are_kept_apart(tmp_path):
    for part, classes in (("train", "abc"), ("val", "de"), ("test", "f")):
        put_pictures(tmp_path / part, classes)
    (tmp_path / "train" / "a" / "notes.txt").write_text("no picture")
    (tmp_path / "train" / "a" / "._0.jpg").write_text("what another system leaves")
    (tmp_path / "train" / "empty").mkdir()
    found = load_characters("folder", str(tmp_path), seed=0, size=6)
    assert [len(part) for part in parts(found)] == [3, 2, 1]
    assert found.shape == (3, 6, 6)
    assert all(c.shape == (3, 108) for part in parts(found) for c in part)


def test_channels_come_one_after_the_other(tmp_path):
    put_pictures(tmp_path, "abc", suffix=".png")
    Image.new("RGB", (9, 9), (10, 20, 30)).save(tmp_path / "a" / "0.png")
    found = load_characters("folder", str(tmp_path), seed=0, size=2)
    images = np.concatenate([c for part in parts(found) for c in part])
    assert [10] * 4 + [20] * 4 + [30] * 4 in images.tolist()


def test_undivided_folders_are_divided_by_the_seed(tmp_path):
    put_pictures(tmp_path, [f"class{i:02}" for i in range(25)], images=1, mode="L", suffix=".png")
    found = load_characters("folder", str(tmp_path), seed=0, size=4)
    assert [len(part) for part in parts(found)] == [16, 4, 5]
    assert found.shape == (1, 4, 4)
    everything = [c.tobytes() for part in parts(found) for c in part]
    assert len(set(everything)) == 25
    other = load_characters("folder", str(tmp_path), seed=1, size=4)
    assert [c.tobytes() for c in other.test] != [c.tobytes() for c in found.test]


def test_three_classes_are_enough(tmp_path):
    put_pictures(tmp_path, "abc")
    assert [len(p) for p in parts(load_characters("folder", str(tmp_path), 0, 4))] == [1, 1, 1]


@pytest.mark.parametrize("classes", ["", "a", "ab"])
def test_fewer_classes_are_refused(tmp_path, classes):
    put_pictures(tmp_path, classes)
    with pytest.raises(UsageError, match="at least three folders with pictures"):
        load_characters("folder", str(tmp_path), seed=0)


def test_folders_need_a_directory():
    with pytest.raises(UsageError, match="needs --data-dir"):
        load_characters("folder", None, seed=0)


def test_digits_allow_five_ways_in_every_part():
    found = load_characters("digits", None, seed=0)
    assert [len(part) for part in parts(found)] == [8, 6, 6]
    assert found.shape == (1, 8, 8)
    upright, turned = found.train[:2]
    np.testing.assert_array_equal(turned[5].reshape(8, 8), np.rot90(upright[5].reshape(8, 8)))
    images = [image.tobytes() for part in parts(found) for c in part[::2] for image in c]
    assert len(images) == 1_797
    assert [c.tobytes() for c in load_characters("digits", None, 1).train] != [
        c.tobytes() for c in found.train
    ]


@pytest.mark.parametrize(
    ("name", "size", "fault"),
    [
        ("digits", 9, "8 x 8"),
        ("omniglot", 0, "at least 1"),
        ("folder", 10**20, "at most 1,000"),
        ("omniglott", 8, "'omniglot'"),
    ],
)
def test_what_cannot_be_is_refused(name, size, fault):
    with pytest.raises(UsageError, match=fault):
        load_characters(name, None, seed=0, size=size)
