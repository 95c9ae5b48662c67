# USR1 comes before the time is over: all agents then stop together, keep a checkpoint and leave
# with status 85.  TERM comes when the job is cancelled or its time is over: it is not to come again.
caught='' ended='' job=''
trap 'caught=1; kill -USR1 "$job"' USR1
trap 'caught=1 ended=1' TERM

{{ batch.launcher | starting }} {{ batch.program | words }} "${words[@]}" &
job=$!
status=127
while
    caught=''
    wait "$job" # until it ends, or a signal is caught
    said=$?
    [ "$said" -eq 127 ] || status=$said # which is said of a job whose status was told before
    [ -n "$caught" ]
do :; done

{% if batch.anew %}
# A checkpoint that is refused does not fit this program any more.
if [ "$status" -eq 2 ] && [ "${words[0]}" = resume ]; then
    rm -rf -- "$saved"
    status=85
fi
{% endif %}
if [ "$status" -ne 85 ] || [ -n "$ended" ]; then
    exit "$status"
fi
if [ "{{ "${" ~ scheduler.rounds }}:-0}" -ge {{ batch.again }} ]; then
    echo "not done after {{ batch.again }} restarts: submit the script again to go on" >&2
    exit "$status"
fi
