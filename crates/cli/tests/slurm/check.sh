#!/bin/bash
# Runs a table through a real Slurm on this machine: submits, kills a run's job, lets it be requeued, lets another run into its
# time limit, and compares every record with those of runs made without a cluster. Installs and starts Slurm (Debian, as
# root); what it started is stopped again in the end.
#
#   check.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
place=$(mktemp -d /var/tmp/dpcl-slurm.XXXXXX)
fail() { echo "FAILED: $*" >&2; squeue --array --states=all 2>/dev/null || true; tail -n 5 "$place"/reproduced/smoke/cluster/logs/* 2>/dev/null || true; exit 1; }

if ! command -v slurmctld >/dev/null; then
    apt-get update -qq && apt-get install -y -qq slurm-wlm munge >/dev/null
fi
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd /run/munge
chown munge: /run/munge
sed "s/@HOST@/$(hostname -s)/g" "$here/slurm.conf" > /etc/slurm/slurm.conf
stop() {
    for pid in /run/slurmd.pid /run/slurmctld.pid; do
        [ -e $pid ] && kill "$(cat $pid)" 2>/dev/null || true
    done
    rm -rf "$place"
}
trap stop EXIT
service munge start >/dev/null
scontrol ping 2>/dev/null | grep -q UP || slurmctld
for _ in $(seq 30); do scontrol ping 2>/dev/null | grep -q UP && break; sleep 1; done
pgrep -x slurmd >/dev/null || slurmd
for _ in $(seq 30); do sinfo -h -o %T | grep -q -e idle -e mixed && break; sleep 1; done
sinfo -h -o %T | grep -q -e idle -e mixed || scontrol update nodename="$(hostname -s)" state=resume || true

cd "$place"
table="reproduce rates --scale smoke --seeds 1..2 --checkpoint-every 1"
cluster="--engine slurm --mem 500M --time 0:05:00 --grace 60"

# A dry run prints the script and leaves nothing.
$program $table $cluster --dry-run > script.txt 2>&1
grep -q '#SBATCH --array=0-3' script.txt || fail "the script of a dry run"
[ ! -e reproduced ] || fail "a dry run left something"

$program $table $cluster
job=$(sed -n 's/.*"job": "\([0-9]*\)".*/\1/p' reproduced/smoke/cluster/array.json)
refused=$($program $table $cluster 2>&1 | tr -s '\n ' ' ' || true)
[[ $refused == *"waiting or running"* ]] || fail "the same runs could be submitted twice: $refused"

# The first run is killed as by a failing node, and its job requeued: it goes on from its last checkpoint.
first=$(sed -n 's/.*"\(.*seed.*\)".*/\1/p' reproduced/smoke/cluster/array.json | head -n 1)
for _ in $(seq 600); do ls "$first"/checkpoint/*.ckpt >/dev/null 2>&1 && break; sleep 0.1; done
pid=$(pgrep -f "run-one --order $place/reproduced/smoke/cluster/orders/0.json" | tail -n 1)
kill -KILL "$pid" || fail "the first run was over before it could be killed"
[ ! -e "$first/result.json" ] || fail "the first run finished although it was killed"
requeued=no
for _ in $(seq 20); do scontrol requeue "${job}_0" 2>/dev/null && requeued=yes && break; sleep 1; done
echo "killed, requeued $requeued: $first"

# The second hears that its time is nearly up: it leaves a checkpoint and waits for its next turn.
second=$(sed -n 's/.*"\(.*seed.*\)".*/\1/p' reproduced/smoke/cluster/array.json | sed -n 2p)
for _ in $(seq 600); do ls "$second"/checkpoint/*.ckpt >/dev/null 2>&1 && break; sleep 0.1; done
if [ ! -e "$second/result.json" ] && scancel --batch --signal=USR1 "${job}_1"; then
    echo "told that its time is up: $second"
fi

done_all() { [ "$(ls reproduced/smoke/cifar100-5/*/result.json 2>/dev/null | wc -l)" = 4 ]; }
again=no
for second_passed in $(seq 300); do
    done_all && break
    # Slurm holds a job back for a while after it was requeued.
    if [ "$(squeue -h --jobs "$job" 2>/dev/null | wc -l)" = 0 ]; then
        $program $table $cluster && again=yes
        job=$(sed -n 's/.*"job": "\([0-9]*\)".*/\1/p' reproduced/smoke/cluster/array.json)
    fi
    sleep 1
done
$program $table $cluster --status > status.txt
cat status.txt | head -n 3
done_all || fail "not every run finished"
grep -q '4 runs: 4 done' status.txt || fail "the status"
echo "all finished, submitted again: $again"

# A job can be cancelled, and what it had is gone on with.
more="reproduce memory --scale smoke --seeds 1..3 --checkpoint-every 1"
$program $more $cluster
sleep 3
$program $more $cluster --cancel
for _ in $(seq 60); do [ "$(squeue -h 2>/dev/null | wc -l)" = 0 ] && break; sleep 1; done
[ "$(squeue -h | wc -l)" = 0 ] || fail "the cancelled job is still there"
echo "cancelled"

# The same runs without a cluster: the same records, byte for byte.
$program $table --out undisturbed > /dev/null 2>&1 || fail "runs without a cluster"
for run in undisturbed/smoke/cifar100-5/*-seed*; do
    cmp "$run/events.jsonl" "reproduced/smoke/cifar100-5/$(basename "$run")/events.jsonl" || fail "$run differs"
done
echo "PASSED: killed, requeued, told of its time limit, cancelled; all records identical"
