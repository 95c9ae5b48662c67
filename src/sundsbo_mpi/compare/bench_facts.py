"""What benches have in common, where they ran, and where they do not bear comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from sundsbo_mpi.bench.crowding import crowd_in
from sundsbo_mpi.bench.record import NOTHING, Bench, Key
from sundsbo_mpi.compare.environment import counted, hosts_and_devices, library_and_versions
from sundsbo_mpi.compare.reading import NamedBench

SETTINGS = ("topology", "repeats", "payload_x", "payload_y")


def settings(bench: Bench) -> dict[str, str]:
    """Return what was to be measured."""
    about = bench.attributes
    return {name: str(about[name]) for name in SETTINGS if name in about}


def environment(bench: Bench) -> dict[str, str]:
    """Return the facts about hosts, libraries, versions and variables of the environment."""
    about, ranks = bench.attributes, bench.ranks
    launcher = {"launcher": str(about["launcher"])} if "launcher" in about else {}
    of_ranks = {"logical processors of a node": "node_cores", "binding of a rank": "binding"}
    return {
        **library_and_versions(about),
        **launcher,
        **hosts_and_devices(ranks, ranks["node"].tolist()),
        **{told: counted(ranks[name].tolist()) for told, name in of_ranks.items() if name in ranks},
        **{f"transport {name}": said for name, said in _named(bench, "transports").items()},
        **_named(bench, "environment"),
    }


def remarks(benches: Sequence[NamedBench]) -> list[str]:
    """Return one sentence for each reason why the benches do not bear comparison."""
    found = [named.bench for named in benches]
    said = []
    if any(not np.array_equal(bench.edges, found[0].edges) for bench in found):
        said.append("the networks differ: rounds over all links are not the same work.")
    if any(not np.array_equal(bench.sizes, found[0].sizes) for bench in found):
        common = ", ".join(map(str, common_sizes(found))) or "none"
        said.append(f"the sizes of the messages differ: in common are {common} (bytes).")
    return said + [
        f"'{named.path}' was timed where {crowd.fact}: its times say little."
        for named in benches
        if (crowd := crowd_in(named.bench))
    ]


def common_sizes(benches: Sequence[Bench]) -> list[int]:
    """Return the sizes that all have measured, ascending."""
    return sorted(set.intersection(*(set(bench.sizes.tolist()) for bench in benches)))


def ends(benches: Sequence[Bench]) -> list[int]:
    """Return the smallest and the largest of the common sizes."""
    common = common_sizes(benches)
    return list(dict.fromkeys(common[:1] + common[-1:]))


def all_keys(benches: Sequence[Bench]) -> list[Key]:
    """Return what any of them has measured."""
    return list(dict.fromkeys(key for bench in benches for key in bench.series))


def words(key: Key) -> str:
    """Name a series."""
    return ", ".join(word for word in key if word != NOTHING)


def slowest(bench: Bench, key: Key, size: int) -> float:
    """Return the seconds of the slowest rank; NaN where it was not measured."""
    if key not in bench.series:
        return math.nan
    return float(bench.series[key].slowest[bench.sizes.tolist().index(size)])


def _named(bench: Bench, attribute: str) -> dict[str, str]:
    """Return an attribute that holds a JSON object, nothing where it does not."""
    try:
        found = json.loads(str(bench.attributes.get(attribute, "{}")))
    except ValueError:
        return {}
    return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}
