#!/bin/bash
#SBATCH --job-name={{ batch.name }}
{% if batch.runs | length > 1 %}
#SBATCH --array=0-{{ batch.runs | length - 1 }}
{% endif %}
#SBATCH --ntasks={{ batch.agents }}
{% if need.nodes %}
#SBATCH --nodes={{ need.nodes }}
{% endif %}
{% if need.cores %}
#SBATCH --cpus-per-task={{ need.cores }}
{% endif %}
{% if need.gpus %}
#SBATCH --gpus-per-node={{ need.gpus }}
{% endif %}
{% if need.seconds %}
#SBATCH --time={{ need.clock }}
{% endif %}
{% if need.partition %}
#SBATCH --partition="{{ need.partition }}"
{% endif %}
{% if need.account %}
#SBATCH --account="{{ need.account }}"
{% endif %}
{% if need.constraint %}
#SBATCH --constraint="{{ need.constraint }}"
{% endif %}
{% if batch.directory %}
#SBATCH --chdir="{{ batch.directory }}"
{% endif %}
#SBATCH --output="{{ batch.log or batch.name ~ ("-%A_%a.log" if batch.runs | length > 1 else "-%j.log") }}"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{{ batch.notice }}

{% set number = "SLURM_ARRAY_TASK_ID" %}
{% include "begin.sh" %}

{% if batch.by_mpirun %}
# Slurm's own way to start ranks would be in the way of another launcher's.
export SLURM_MPI_TYPE=none

{% endif %}
{% if need.cores %}
export SRUN_CPUS_PER_TASK={{ need.cores }} # srun does not take it from the job

{% endif %}
{% if not batch.by_mpirun %}
# MPICH finds its shared memory by the numbers of the job and of its step, also what ranks that were
# killed have left there, in which it would wait for ever: each time, the ranks are another step.
for ((step = 0; step < ${SLURM_RESTART_COUNT:-0}; step++)); do
    srun --quiet --mpi=none -N 1 -n 1 true
done

{% endif %}
{% include "round.sh" %}
scontrol requeue "$SLURM_JOB_ID" || exit "$status"
