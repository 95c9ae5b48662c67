#!/bin/bash
# flux: --job-name={{ batch.name }}
# flux: --nslots={{ batch.agents }}
{% if need.nodes %}
# flux: --nodes={{ need.nodes }}
{% endif %}
{% if need.cores %}
# flux: --cores-per-slot={{ need.cores }}
{% endif %}
{% if need.gpus %}
# flux: --gpus-per-slot={{ need.gpus }}
{% endif %}
# flux: --time-limit={{ need.seconds }}s
{% if need.partition %}
# flux: --queue="{{ need.partition }}"
{% endif %}
{% if need.account %}
# flux: --bank="{{ need.account }}"
{% endif %}
# flux: --output="{{ batch.log or batch.name ~ "-{{id}}.log" }}"

{% include "begin.sh" %}

{% include "round.sh" %}
# Inside a job, flux speaks to the job's own instance: its parent is the cluster's.
flux --parent batch --env=ROUND=$((${ROUND:-0} + 1)) "$script" || exit "$status"
