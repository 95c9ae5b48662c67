"""The data sets that are known by name: their files, checksums, addresses and constants.

Every SHA-256 is that of decompressed bytes.  CIFAR-10's are those that torchvision-ruby and
red-datasets publish for the six binary batches.  MNIST's were computed from files with the MD5 that
torchvision publishes, and Fashion-MNIST's from Debian's package.  Downloads are checked against
what torchvision (MNIST, Fashion-MNIST, Omniglot: MD5) and red-datasets (CIFAR-10: SHA-256) publish;
what they hold is checked against the SHA-256 as well, where there is one.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A file of a data set: how many samples it has, and the SHA-256 of its bytes."""

    name: str
    samples: int
    sha256: str


class Download(NamedTuple):
    """A file to fetch: its address, and its checksum as ``algorithm:hexadecimal digits``."""

    url: str
    checksum: str

    @property
    def file(self) -> str:
        """Return the last part of the address."""
        return self.url.rpartition("/")[2]


class Entry(NamedTuple):
    """A data set of labelled images.

    ``folders`` are where its files lie below ``--data-dir``, the first one being where they are
    fetched to; ``train`` and ``test`` are its files; ``training`` of every ``training + 1``
    training samples stay for training, the others are for validation; ``mean`` and ``std`` are the
    customary ones of a value in [0, 1], for each channel.
    """

    title: str
    folders: tuple[str, ...]
    train: tuple[Part, ...]
    test: tuple[Part, ...]
    shape: tuple[int, int, int]
    classes: int
    training: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    downloads: tuple[Download, ...]


DEBIAN = "/usr/share/datasets/fashion-mnist"
"""Where Debian's package dataset-fashion-mnist puts Fashion-MNIST's files."""

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_CIFAR = "https://www.cs.toronto.edu/~kriz"
_OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"


def _pair(file: str, samples: int, images: str, labels: str) -> tuple[Part, ...]:
    """Return a file of images and a file of labels, given their checksums."""
    return (
        Part(f"{file}-images-idx3-ubyte", samples, images),
        Part(f"{file}-labels-idx1-ubyte", samples, labels),
    )


def _compressed(base: str, *md5: str) -> tuple[Download, ...]:
    """Return the downloads of both pairs, given the checksums of the compressed files."""
    names = [part.name for file in ("train", "t10k") for part in _pair(file, 0, "", "")]
    return tuple(
        Download(f"{base}/{name}.gz", f"md5:{digest}")
        for name, digest in zip(names, md5, strict=True)
    )


ENTRIES: dict[str, Entry] = {
    "mnist": Entry(
        title="MNIST",
        folders=("MNIST/raw",),
        train=_pair(
            "train",
            60_000,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        test=_pair(
            "t10k",
            10_000,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        shape=(1, 28, 28),
        classes=10,
        training=5,
        mean=(0.1307,),
        std=(0.3081,),
        downloads=_compressed(
            _MNIST,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "fashion-mnist": Entry(
        title="Fashion-MNIST",
        folders=("FashionMNIST/raw",),
        train=_pair(
            "train",
            60_000,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        test=_pair(
            "t10k",
            10_000,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        shape=(1, 28, 28),
        classes=10,
        training=5,
        mean=(0.286,),
        std=(0.353,),
        downloads=_compressed(
            _FASHION,
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    "cifar-10": Entry(
        title="CIFAR-10",
        folders=("cifar-10-batches-bin", "cifar-10-batches-py"),
        train=tuple(
            Part(f"data_batch_{number}", 10_000, sha256)
            for number, sha256 in enumerate(
                (
                    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                ),
                start=1,
            )
        ),
        test=(
            Part(
                "test_batch",
                10_000,
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
        ),
        shape=(3, 32, 32),
        classes=10,
        training=4,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        downloads=(
            Download(
                f"{_CIFAR}/cifar-10-binary.tar.gz",
                "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
    ),
}
"""Name and entry of each data set of labelled images that is read from files."""

OMNIGLOT_FOLDER = "omniglot-py"
"""Where torchvision puts Omniglot below its directory."""

OMNIGLOT_CLASSES = {"images_background": 964, "images_evaluation": 659}
"""Number of characters in each of Omniglot's two sets of alphabets."""

OMNIGLOT_IMAGES = 20
"""Number of images of each of Omniglot's characters."""

OMNIGLOT_DOWNLOADS = {
    "images_background": Download(
        f"{_OMNIGLOT}/images_background.zip", "md5:68d2efa1b9178cc56df9314c21c6e718"
    ),
    "images_evaluation": Download(
        f"{_OMNIGLOT}/images_evaluation.zip", "md5:6b91aef0f799c5bb55b94e3f2daec811"
    ),
}
"""The archives of Omniglot's two sets of alphabets, which are read as they are."""
