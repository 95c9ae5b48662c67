#!/bin/sh
# Install what tests/slurm starts: Slurm, munge, and the libraries of its two ways to start MPI ranks.
set -eu

packages='slurm-wlm munge libpmi2-0 libpmix-dev' # of the last, the name by which Slurm loads PMIx
# shellcheck disable=SC2086  # several words
if ! dpkg-query --show --showformat '${db:Status-Abbrev}\n' $packages 2>/dev/null |
    awk '/^ii/ { found++ } END { exit found != 4 }'; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "test-slurm: Slurm is not installed, and this is not root on a Debian machine" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    apt-get install -q -y --no-install-recommends $packages
fi
