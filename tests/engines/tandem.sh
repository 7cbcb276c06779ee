#!/usr/bin/env bash
# tandem serve and the same executors without HTTP in turns, with the same arrivals and queries.
#
#   tests/engines/tandem.sh TANDEM FOLDER [LANES]        results: FOLDER/serve-LANES.csv
#
# HALF is half of what a lane sustains in queries per second, FULL more than it can do, for an index of DOCS documents. In
# steps, the rates are shares of what the lanes do if queries always wait.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tandem=$(realpath "$1")
mkdir -p "$2"
cd "$2"
lanes=${3:-1}
half=$((${HALF:-450} * lanes)) full=$((${FULL:-1700} * lanes)) seconds=${SECONDS_EACH:-8}
runs=runs-$lanes
rm -rf "$runs"
mkdir "$runs"
for index in big small; do
  if [ "$index" = big ]; then documents=${DOCS:-12000000}; else documents=100000; fi
  if [ ! -s $index/workload.csv ]; then
    "$tandem" index synth --docs "$documents" --num-queries 1000 -o $index
    "$tandem" profile $index --queries $index/queries.tsv --limit 1000 --mode or --on cpu --repeats 2 -o $index/workload.csv
  fi
done
servers=()
trap '[ ${#servers[@]} = 0 ] || kill "${servers[@]}"' EXIT
declare -A port
for index in big small; do
  port[$index]=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$tandem" serve $index --port "${port[$index]}" --cpus "$lanes" --most-queries 100000 2> "$runs/server-$index.log" &
  servers+=($!)
done
sleep 5
# direct OUT INDEX RATE SECONDS SEED, and the same through HTTP
direct() {
  "$tandem" live "$2" --queries "$2/queries.tsv" --workload "$2/workload.csv" --machine none --policy cpu-only --gpu none \
    --cpus "$lanes" --rate "$3" --seconds "$4" --seeds "$5" --log -o "$1-direct" > "$1-direct.txt" 2>&1 || tail -n 1 "$1-direct.txt"
}
http() {
  "$tandem" live --target "http://127.0.0.1:${port[$2]}" --dialect tandem --queries "$2/queries.tsv" --rate "$3" --seconds "$4" \
    --seed "$5" --warm-up 0 --timeout-ms 30000 --out "$1-http" > "$1-http.txt" 2>&1 || tail -n 1 "$1-http.txt"
}
# pair KIND INDEX RATE SECONDS SEED: turns change who goes first.
pair() {
  local out=$runs/$1-$3-$5
  shift
  if [ $(($4 % 2)) = 1 ]; then direct "$out" "$@"; http "$out" "$@"; else http "$out" "$@"; direct "$out" "$@"; fi
}
http "$runs/warm" big "$half" 2 9
for seed in 1 2 3; do pair half big "$half" "$seconds" $seed; done
for seed in 1 2; do pair small small "$half" "$seconds" $seed; done
for seed in 1 2 3; do pair full big "$full" 3 $seed; done
most=$("$here/serve.py" "$runs" "$lanes" most)
for seed in 1 2; do
  for share in 92 86 95 89 98; do pair step big $((most * share / 100)) "$seconds" $seed; done
done
"$here/serve.py" "$runs" "$lanes" table > "serve-$lanes.csv"
cat "serve-$lanes.csv"
