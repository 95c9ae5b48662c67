#!/bin/sh
# Hosts on one machine for MPI: network namespaces with a name and an address of their own, joined
# by links of a given rate.  For root only.
#     hosts.sh up COUNT [RATE]     make sundsbo1 ... sundsboCOUNT, at 10.79.0.1 ... (RATE as in tc)
#     hosts.sh down COUNT          remove them
#     hosts.sh HOST COMMAND...     run a command there; stands for ssh where a launcher wants one
set -eu

name() { case $1 in 10.79.0.*) echo "sundsbo${1##*.}" ;; *) echo "$1" ;; esac; }

case $1 in
up)
    ip netns add sundsbo-hub
    ip netns exec sundsbo-hub ip link add bridge type bridge
    ip netns exec sundsbo-hub ip link set bridge up
    for i in $(seq "$2"); do
        ip netns add "sundsbo$i"
        ip link add eth0 netns "sundsbo$i" type veth peer name "port$i" netns sundsbo-hub
        ip netns exec sundsbo-hub ip link set "port$i" master bridge up
        ip netns exec "sundsbo$i" ip link set lo up
        ip netns exec "sundsbo$i" ip addr add "10.79.0.$i/24" dev eth0
        ip netns exec "sundsbo$i" ip link set eth0 up
        if [ -n "${3:-}" ]; then
            ip netns exec "sundsbo$i" \
                tc qdisc add dev eth0 root tbf rate "$3" burst 256kb latency 50ms
        fi
    done
    ;;
down)
    for i in $(seq "$2") -hub; do
        ip netns del "sundsbo$i" 2>/dev/null || true
    done
    ;;
*)
    while [ "${1#-}" != "$1" ]; do
        case $1 in -p | -l | -o | -i) shift ;; esac
        shift
    done
    host=$(name "$1")
    shift
    exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
    ;;
esac
