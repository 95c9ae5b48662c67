#!/bin/bash
# flux: --job-name=sundsbo
# flux: --nslots=10
# flux: --time-limit=14400s
# flux: --output="sundsbo-{{id}}.log"

# Written by sundsbo-mpi; submit with: flux batch launch/flux.sh
agents=10
output=sundsbo.h5
saved=sundsbo.saved
settings=(--topology ring.npz --iterations 5000)
resuming=(--iterations 5000)
seconds=14400 # the job's time limit, as above
notice=180 # seconds before its end when the run stops
script=$0 # the copy that the scheduler made of this script: submitted again, it is the same
if [ ! -f "$script" ]; then
    echo "'$script' is no file, so this script could not be submitted again: set script to its path" >&2
    exit 2
fi

# Where there is a checkpoint the run goes on from it; without the folder it begins anew.
checkpoints=("$saved"/iteration-*/manifest.json)
if [ -e "${checkpoints[0]}" ]; then
    words=(resume "$saved" "${resuming[@]}")
else
    words=(run "${settings[@]}" --output "$output" --checkpoint "$saved")
    # What an earlier round of this job left without a checkpoint makes way.
    [ "${ROUND:-0}" -eq 0 ] || words+=(--overwrite)
fi
words+=(--max-walltime $((seconds - notice)))

# USR1 comes before the time is over: all agents then stop together, keep a checkpoint and leave
# with status 85.  TERM comes when the job is cancelled or its time is over: it is not to come again.
caught='' ended='' job=''
trap 'caught=1; kill -USR1 "$job"' USR1
trap 'caught=1 ended=1' TERM

flux run -o pmi=pmix -n "$agents" sundsbo-mpi "${words[@]}" &
job=$!
status=127
while
    caught=''
    wait "$job" # until it ends, or a signal is caught
    said=$?
    [ "$said" -eq 127 ] || status=$said # which is said of a job whose status was told before
    [ -n "$caught" ]
do :; done

if [ "$status" -ne 85 ] || [ -n "$ended" ]; then
    exit "$status"
fi
if [ "${ROUND:-0}" -ge 50 ]; then
    echo "not done after 50 restarts: submit the script again to go on" >&2
    exit "$status"
fi
# Inside a job, flux speaks to the job's own instance: its parent is the cluster's.
flux --parent batch --env=ROUND=$((${ROUND:-0} + 1)) "$script" || exit "$status"
