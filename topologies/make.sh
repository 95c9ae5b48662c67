#!/bin/sh
# Writes the weight matrices of this folder again: ./make.sh [FOLDER]
set -eu
cd "${1:-$(dirname "$0")}"

topology() {
    "${SUNDSBO_MPI:-sundsbo-mpi}" topology "$@"
}

topology ring --agents 10 --self-weight 0.2 -o ring-10-0.2.txt
topology ring --agents 10 --self-weight 0.4 -o ring-10-0.4.txt
topology ring --agents 10 --self-weight 0.5 -o ring-10-0.5.txt
topology ring --agents 10 --edge-weight 1/3 -o ring-10-third.txt
topology ring --agents 5 --edge-weight 1/3 -o ring-5-third.txt
topology exponential --agents 10 -o exponential-10.txt
topology line --agents 10 -o line-10.txt
topology exponential --agents 10 --self-weight 0.6415 -o rho-0.798.txt
topology circulant --agents 10 --offsets 1,2 --self-weight 0.2 --lazy -o rho-0.824.txt
topology ring --agents 10 --self-weight 0.5 -o rho-0.905.txt
topology ring --agents 10 --self-weight 0.2 --lazy -o rho-0.924.txt
topology line --agents 10 --edge-weight 0.3065 -o rho-0.970.txt
