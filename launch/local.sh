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

# A signal is a request to stop in order: every agent gets USR1, and the run ends with status 85.
# Given INT or TERM, Open MPI's mpirun would kill the agents half a second later; MPICH's knows no
# USR2.  A second signal of the same kind ends the job at once, unless it comes within a second: one
# request may be delivered twice.
heed() {
    caught=1
    # shellcheck disable=SC2086  # several words
    trap '' $signals # a trap may run within another one
    now=$(date +%s)
    if [ -z "$kind" ]; then
        send USR1
    elif [ "$kind" = "$1" ] && [ "$now" -gt $((since + 1)) ]; then
        send INT
        sleep 1
        send INT # on which MPICH's mpirun waits for its ranks no longer
    fi
    if [ "$kind" != "$1" ]; then
        kind=$1
        since=$now
    fi
    listen
}

listen() {
    for each in $signals; do
        # shellcheck disable=SC2064  # the name as it is now
        trap "heed $each" "$each"
    done
}

send() {
    kill -s "$1" "${!:-}" 2>/dev/null || :
}

signals='INT TERM HUP USR1 USR2'
kind=
listen

# In a session of its own the terminal's Ctrl-C reaches mpirun through heed alone.
apart=$(command -v setsid || :)
# shellcheck disable=SC2086  # no word where there is no setsid
$apart "${bin}mpirun" -n "$agents" "${bin}sundsbo-mpi" "$@" </dev/null &

# A trap ends wait early; a shell that has told the status of the job before says 127.
status=127
caught=1
while [ "$caught" -eq 1 ]; do
    caught=0
    said=0
    wait "$!" || said=$?
    [ "$said" -eq 127 ] || status=$said
done
exit "$status"
