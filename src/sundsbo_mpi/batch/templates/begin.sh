# Written by sundsbo-mpi; submit with: {{ scheduler.submit }} {{ path | word }}
{% if not scheduler.tells and batch.directory %}
cd {{ batch.directory | word }} || exit
{% elif scheduler.folder %}
cd "${{ scheduler.folder }}" || exit
{% endif %}
{% for line in batch.setup %}
{{ line }}
{% endfor %}
{% macro chosen(run, indent) %}
{{ indent }}agents={{ run.agents }}
{{ indent }}output={{ run.output | word }}
{{ indent }}saved={{ run.checkpoint | word }}
{{ indent }}settings=({{ run.settings | words }})
{{ indent }}resuming=({{ run.resuming | words }})
{% if run.log %}
{{ indent }}exec >>{{ run.log | word }} 2>&1
{% endif %}
{% endmacro %}
{% if batch.runs | length > 1 %}
case ${{ number }} in
{% for run in batch.runs %}
{{ loop.index0 }})
{{ chosen(run, "    ") -}}
{{ "    ;;" }}
{% endfor %}
*)
    echo "there is no run {{ "$" ~ number }} here" >&2
    exit 2
    ;;
esac
{% else %}
{{ chosen(batch.runs[0], "") -}}
{% endif %}
{% if not scheduler.tells %}
seconds={{ need.seconds }} # the job's time limit, as above
notice={{ batch.notice }} # seconds before its end when the run stops
script=$0 # the copy that the scheduler made of this script: submitted again, it is the same
if [ ! -f "$script" ]; then
    echo "'$script' is no file, so this script could not be submitted again: set script to its path" >&2
    exit 2
fi
{% endif %}

# Where there is a checkpoint the run goes on from it; without the folder it begins anew.
checkpoints=("$saved"/iteration-*/manifest.json)
if [ -e "${checkpoints[0]}" ]; then
    words=(resume "$saved" "${resuming[@]}")
else
    words=(run "${settings[@]}" --output "$output" --checkpoint "$saved")
    # What an earlier round of this job left without a checkpoint makes way.
    [ "{{ "${" ~ scheduler.rounds }}:-0}" -eq 0 ] || words+=(--overwrite)
fi
{% if not scheduler.tells %}
words+=(--max-walltime $((seconds - notice)))
{% endif %}
