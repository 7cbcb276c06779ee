#!/usr/bin/env bash
# All results of docs/guide/servers.md, in about a quarter of an hour on a machine that does nothing else.
#
#   tests/engines/measure.sh TANDEM LATENESS DATA FOLDER [RESULTS]
#
# LATENESS is the example of crates/http, DATA the folder of the shared collections, FOLDER keeps engines and indexes.
# ENGINES names some of the engines.
set -euo pipefail
cd "$(dirname "$0")/../.."
tandem=$(realpath "$1")
lateness=$(realpath "$2")
data=$(realpath "$3")
folder=$(realpath "$4")
results=${5:-results/servers}
mkdir -p "$results"
rm -rf "$folder/out"
mkdir -p "$folder/out"
# Server and client have a half of the cores each.
cores=$(nproc)
export SERVER_CORES=$((cores / 2))
export SERVER="taskset -c 0-$((cores / 2 - 1))" CLIENT="taskset -c $((cores / 2))-$((cores - 1))"
tests/engines/awake.py $(seq 0 $((cores / 2 - 1))) &
trap "kill $!" EXIT
export PROFILE_SECONDS=${PROFILE_SECONDS:-14} LIVE_SECONDS=${LIVE_SECONDS:-3}
queries=$data/queries/trec-tb05-efficiency-50k.tsv
uptime
"$lateness" 10000,20000,30000,50000 5 1 "$results/client.csv"
sed -i "2i # commit: $("$tandem" --version | sed 's/.*commit //; s/)//')" "$results/client.csv"
LATENESS=$lateness tests/engines/tandem.sh "$tandem" "$folder/tandem"
{
  "$tandem" --version | sed 's/tandem \(.*\) (commit \(.*\))/# tandem: \1\n# commit: \2/'
  echo '# command: tests/engines/tandem.sh'
  cat "$folder/tandem/serve-1.csv"
} > "$results/serve.csv"
for engine in ${ENGINES:-tantivy seekstorm anserini}; do
  for collection in win32-docs-48k enwiki-2014-261k; do
    name=$engine-$collection
    DEADLINES='50 10' OUT=$folder/out/$name tests/engines/$engine.sh "$tandem" "$data/corpus/$collection.jsonl.zst" \
      "$queries" "$folder/$name" 2>&1 | tee "$folder/out/$name.txt" || echo "$name: failed"
  done
done
tests/engines/summary.py "$folder/out" $((cores / 2)) "$results/engines.csv" tests/engines/measure.sh
uptime
