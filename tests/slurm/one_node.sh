#!/usr/bin/env bash
# A sweep through a real Slurm: one node, this machine, all of Slurm's files in a folder that is removed afterwards.
#
#   tests/slurm/one_node.sh target/release/tandem
#
# Needs root and Debian's packages slurm-wlm and munge. The array's parts and the job that merges them must write the same
# bytes as the sweep played by itself.
set -euo pipefail
tandem=$(realpath "$1")
dir=$(mktemp -d)
cores=$(nproc)
host=$(hostname -s)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

mkdir -p "$dir"/{state,spool,munge} && chmod 700 "$dir/munge"
dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 status=none && chmod 400 "$dir/munge/key"
munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge.socket" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" > "$dir/munge.out" 2>&1 &
pids+=($!)

cat > "$dir/slurm.conf" << CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$dir/slurm.conf"
for try in $(seq 50); do [ -S "$dir/munge.socket" ] && break; sleep 0.1; done
slurmctld -D > "$dir/slurmctld.out" 2>&1 & pids+=($!)
sleep 1
slurmd -D > "$dir/slurmd.out" 2>&1 & pids+=($!)
for try in $(seq 100); do sinfo -h -o %T 2> /dev/null | grep -q idle && break; sleep 0.2; done
sinfo -h -o %T | grep -q idle || { echo 'Slurm does not start:'; tail "$dir"/slurm*.log; exit 1; }

grid=(sweep --policy mct,cpu-only --cpus 1,2,4 --noise 0,0.5 --seeds 1:2 --rate 60000)
"$tandem" "${grid[@]}" -o "$dir/alone" > /dev/null
"$tandem" "${grid[@]}" -o "$dir/array" --slurm 4
for try in $(seq 300); do [ -z "$(squeue -h)" ] && break; sleep 0.2; done
without_command() { grep -v '^# command' "$1/sweep.csv"; }
if ! cmp <(without_command "$dir/alone") <(without_command "$dir/array"); then
  cat "$dir"/array/*.log "$dir"/slurm*.log
  exit 1
fi
echo "Slurm: an array of 4 jobs and the one that merges wrote the same $(without_command "$dir/array" | wc -l) lines"
