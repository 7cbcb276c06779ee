#!/usr/bin/env bash
# tandem serve and the same executors without HTTP in turns, with the same arrivals and queries.
#
#   tests/engines/tandem.sh TANDEM FOLDER [LANES]        results: FOLDER/serve-LANES.csv
#
# HALF is half of what a lane sustains in queries per second, FULL more than it can do, for an index of DOCS documents; MID is
# half for a tenth of them, and short queries come at HALF. In steps, the rates are shares of what the lanes do if queries always
# wait. LATENESS names the example of crates/http: its server answers at once, so that its times are those of the sockets and the
# client. BEFORE names another tandem, whose server answers in the same turns. HALF_TURNS and others say how often.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
tandem=$(realpath "$1")
mkdir -p "$2"
cd "$2"
lanes=${3:-1}
half=$((${HALF:-450} * lanes)) mid=$((${MID:-2000} * lanes)) full=$((${FULL:-1700} * lanes)) seconds=${SECONDS_EACH:-8}
runs=runs-$lanes
rm -rf "$runs"
mkdir "$runs"
declare -A documents=([big]=${DOCS:-12000000} [mid]=$((${DOCS:-12000000} / 10)) [small]=100000)
for index in "${!documents[@]}"; do
  if [ ! -s $index/workload.csv ]; then
    "$tandem" index synth --docs "${documents[$index]}" --num-queries 1000 -o $index
    "$tandem" profile $index --queries $index/queries.tsv --limit 1000 --mode or --on cpu --repeats 2 -o $index/workload.csv
  fi
done
servers=()
finish() {
  if [ ${#servers[@]} != 0 ]; then kill "${servers[@]}"; fi
  "$here/serve.py" "$runs" "$lanes" table > "serve-$lanes.csv"
}
trap finish EXIT
declare -A port
# start NAME PROGRAM INDEX
start() {
  port[$1]=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$2" serve "$3" --port "${port[$1]}" --cpus "$lanes" --most-queries 100000 2> "$runs/server-$1.log" &
  servers+=($!)
}
for index in "${!documents[@]}"; do
  start $index "$tandem" $index
  if [ -n "${BEFORE:-}" ]; then start ${index}_before "$BEFORE" $index; fi
done
sleep 5
# direct OUT INDEX RATE SECONDS SEED, and the same through HTTP to a server of START
direct() {
  "$tandem" live "$2" --queries "$2/queries.tsv" --workload "$2/workload.csv" --machine none --policy cpu-only --gpu none \
    --cpus "$lanes" --rate "$3" --seconds "$4" --seeds "$5" $log -o "$1-direct" > "$1-direct.txt" 2>&1 || tail -n 1 "$1-direct.txt"
}
http() {
  "$tandem" live --target "http://127.0.0.1:${port[$2]}" --dialect tandem --queries "${2%_before}/queries.tsv" --rate "$3" --seconds "$4" \
    --seed "$5" --warm-up 0 --timeout-ms 30000 --out "$1-http" > "$1-http.txt" 2>&1 || tail -n 1 "$1-http.txt"
}
# pair KIND INDEX RATE SECONDS SEED: turns change who goes first.
pair() {
  local out=$runs/$1-$3-$5 before=$runs/$1_before-$3-$5
  shift
  if [ $(($4 % 2)) = 1 ]; then direct "$out" "$@"; http "$out" "$@"; else http "$out" "$@"; direct "$out" "$@"; fi
  if [ -n "${BEFORE:-}" ]; then
    http "$before" "$1_before" "${@:2}"
    ln -s "$(basename "$out")-direct" "$before-direct"
  fi
}
# Where queries always wait, what one takes longer says nothing.
log=--log
http "$runs/warm" big "$half" 2 9
for turn in $(seq "${SMALL_TURNS:-4}"); do
  if [ -n "${LATENESS:-}" ]; then "$LATENESS" "$half" 4 1 "$runs/null-$half-$turn.csv" > /dev/null; fi
  pair small small "$half" 4 "$turn"
done
for turn in $(seq "${MID_TURNS:-3}"); do pair mid mid "$mid" 4 "$turn"; done
for turn in $(seq "${HALF_TURNS:-3}"); do pair half big "$half" "$seconds" "$turn"; done
log=
for turn in $(seq "${FULL_TURNS:-3}"); do pair full big "$full" 3 "$turn"; done
most=$("$here/serve.py" "$runs" "$lanes" most)
for turn in $(seq "${STEP_TURNS:-2}"); do
  for share in 92 86 95 89 98; do pair step big $((most * share / 100)) "$seconds" "$turn"; done
done
finish
servers=()
cat "serve-$lanes.csv"
