# Shared by the scripts of this folder: a collection as JSON lines, plain queries, and a server that is stopped at the end.
#
#   tests/engines/NAME.sh TANDEM COLLECTION.jsonl.zst QUERIES.tsv [FOLDER]
#
# FOLDER keeps what was installed and indexed; without it a temporary one is removed at the end. OUT is where results go.
set -euo pipefail
tandem=$(realpath "$1")
collection=$(realpath "$2")
queries=$(realpath "$3")
if [ $# -gt 3 ]; then dir=$(mkdir -p "$4" && realpath "$4"); keeps=1; else dir=$(mktemp -d); keeps=; fi
out=${OUT:-$dir/out}
server=
finish() {
  if [ -n "$server" ]; then kill "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; fi
  if [ -z "$keeps" ]; then rm -rf "$dir"; fi
}
trap finish EXIT

# installed: the script goes on, unless INSTALL_ONLY is set.
installed() { if [ -n "${INSTALL_ONLY:-}" ]; then exit; fi; }

# prepare_queries: plain words only, since engines give signs a meaning.
prepare_queries() {
  cut -f2 "$queries" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9\n' ' ' | tr -s ' ' | grep -E '[a-z0-9]' > "$dir/queries.txt"
}

# prepare_documents FIELD: lines with `id` and FIELD, which is title and text.
prepare_documents() {
  if [ -s "$dir/documents.jsonl" ]; then return; fi
  zstd -dcq "$collection" | python3 -c '
import json, sys
for line in sys.stdin:
    one = json.loads(line)
    print(json.dumps({"id": one["id"], sys.argv[1]: one.get("title", "") + " " + one["text"]}))
' "$1" > "$dir/documents.part"
  mv "$dir/documents.part" "$dir/documents.jsonl"
}

# wait_for URL: until the server answers.
wait_for() {
  for _ in $(seq 240); do
    if python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" 2> /dev/null; then return; fi
    if ! kill -0 "$server" 2> /dev/null; then echo "the server ended" >&2; cat "$dir/server.log" >&2; exit 1; fi
    sleep 0.25
  done
  echo "the server does not answer" >&2
  exit 1
}

# free_port: a port that nobody listens on.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# drive URL DIALECT [OPTIONS]: a short profile and a short run; or with DEADLINES="50 10" the capacity within each of these, after
# WARM_SECONDS of queries, since servers with a just-in-time compiler are slow at first. The client runs under CLIENT and the
# server under SERVER, such as "taskset -c 1" and "taskset -c 0", which give each its own cores; the server has SERVER_CORES.
drive() {
  prepare_queries
  what=(--target "$1" --dialect "$2" --queries "$dir/queries.txt" --log-format plain "${@:3}" ${CLIENT:+--spin})
  cores=(${SERVER_CORES:+--cores "$SERVER_CORES"})
  if [ -n "${DEADLINES:-}" ]; then
    ${CLIENT:-} "$tandem" profile "${what[@]}" "${cores[@]}" --profile-seconds "${WARM_SECONDS:-10}" --out "$out/warm"
    for deadline in $DEADLINES; do
      ${CLIENT:-} "$tandem" capacity "${what[@]}" "${cores[@]}" --deadline-ms "$deadline" --profile-seconds "${PROFILE_SECONDS:-60}" \
        --live-seconds "${LIVE_SECONDS:-10}" --out "$out/$deadline" || echo "no answer within $deadline ms"
    done
  else
    # A long deadline, since other processes may delay the client.
    "$tandem" profile "${what[@]}" --limit 50 --profile-seconds 4 --out "$out"
    "$tandem" live "${what[@]}" --rate 20 --seconds 3 --deadline-ms 2000 --out "$out"
  fi
  if [ -n "${TANDEM_CREDENTIALS:-}" ] && grep -rqF "$TANDEM_CREDENTIALS" "$out"; then
    echo 'credentials are in the results' >&2
    exit 1
  fi
}
