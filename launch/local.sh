#!/bin/sh
# Run one agent per rank on this machine, also as root and with more agents than cores:
#     launch/local.sh AGENTS [ARGUMENTS OF sundsbo-mpi]...
# BIN is the folder of mpirun and sundsbo-mpi (a virtual environment's bin); without it those on the
# PATH are taken, or those that 'make demo' installed.
set -eu

agents=${1:?usage: launch/local.sh AGENTS [ARGUMENTS OF sundsbo-mpi]...}
shift
bin=${BIN:+$BIN/}
here=$(dirname "$0")/../.venv/bin
if [ -z "$bin" ] && ! command -v sundsbo-mpi >/dev/null && [ -x "$here/sundsbo-mpi" ]; then
    bin=$here/
fi

# Open MPI refuses root, and more ranks than cores, unless told otherwise; MPICH ignores these.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# On a full node a waiting rank should let a working one run, no rank should be tied to a core that
# others hold as well, and ranks should not add threads.
export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle:-1}"
export PRTE_MCA_hwloc_default_binding_policy="${PRTE_MCA_hwloc_default_binding_policy:-none}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

exec "${bin}mpirun" -n "$agents" "${bin}sundsbo-mpi" "$@"
