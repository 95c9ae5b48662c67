#!/bin/bash
#PBS -N {{ batch.name }}
{% set nodes = need.nodes or 1 %}
{% set each = (batch.agents + nodes - 1) // nodes %}
#PBS -l select={{ nodes }}:ncpus={{ each * (need.cores or 1) }}:mpiprocs={{ each }}{% if need.gpus %}:ngpus={{ need.gpus }}{% endif +%}
#PBS -l walltime={{ need.clock }}
{% if need.partition %}
#PBS -q {{ need.partition }}
{% endif %}
{% if need.account %}
#PBS -A {{ need.account }}
{% endif %}
#PBS -j oe

{% include "begin.sh" %}

{% include "round.sh" %}
qsub -v ROUND=$((${ROUND:-0} + 1)) "$script" || exit "$status"
