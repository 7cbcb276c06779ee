#!/usr/bin/env bash
# tandem serve, compared with the same executors without HTTP: what a query takes longer at half load, and the capacities.
#
#   tests/engines/tandem.sh TANDEM COLLECTION.jsonl.zst QUERIES.tsv [FOLDER]      results: OUT/serve.csv
. "$(dirname "$0")/lib.sh"
mkdir -p "$out"
if [ ! -d "$dir/index" ]; then "$tandem" index build "$collection" --tokenizer ascii -o "$dir/index"; fi
prepare_queries
# Both draw from the same queries, in the same order.
head -n "${QUERIES:-2000}" "$dir/queries.txt" > "$dir/some.txt"
log=(--queries "$dir/some.txt" --log-format plain)
limits=(--deadline-ms 50 --live-seconds "${LIVE_SECONDS:-10}")
direct() { "$tandem" "$@" --policy cpu-only --gpu none --cpus 1; }
if [ ! -s "$dir/workload.csv" ]; then
  "$tandem" profile "$dir/index" "${log[@]}" --limit "${QUERIES:-2000}" --mode or --on cpu --repeats 3 -o "$dir/workload.csv"
fi
direct capacity "$dir/index" "${log[@]}" --workload "$dir/workload.csv" "${limits[@]}" -o "$out/direct"
# capacity OUT: the rate that held, of an answer.
held() { python3 -c '
import csv, sys
rows = csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#"))
print(next(row["held_qps"] for row in rows if row["held_qps"]))' "$1/capacity.csv"; }
rate=$(python3 -c 'import sys; print(round(float(sys.argv[1]) / 2))' "$(held "$out/direct")")
direct live "$dir/index" "${log[@]}" --workload "$dir/workload.csv" --rate "$rate" --seconds 20 -o "$out/direct"
port=$(free_port)
${SERVER:-} "$tandem" serve "$dir/index" --port "$port" --cpus 1 2> "$dir/server.log" &
server=$!
wait_for "http://127.0.0.1:$port/metrics"
target=(--target "http://127.0.0.1:$port" --dialect tandem "${log[@]}")
${CLIENT:-} "$tandem" live "${target[@]}" --rate "$rate" --seconds 20 --warm-up 0 --out "$out/http"
${CLIENT:-} "$tandem" capacity "${target[@]}" "${limits[@]}" --profile-seconds "${PROFILE_SECONDS:-60}" --out "$out/http"
python3 - "$out" << 'PY'
import csv, sys
out = sys.argv[1]
def read(path):
    lines = open(f"{out}/{path}", encoding="utf-8").read().splitlines()
    return [line for line in lines if line.startswith("#")], list(csv.DictReader(line for line in lines if not line.startswith("#")))
head, direct = read("direct/summary.csv")
_, http = read("http/runs.csv")
capacities = [next(row for row in read(f"{name}/capacity.csv")[1] if row["held_qps"]) for name in ("direct", "http")]
with open(f"{out}/serve.csv", "w", encoding="utf-8") as file:
    kept = ("# tandem", "# commit", "# date", "# machine")
    print("\n".join(line for line in head if line.startswith(kept)), file=file)
    print("# command: tests/engines/tandem.sh", file=file)
    print("rate_qps,direct_p50_us,http_p50_us,direct_p99_us,http_p99_us,direct_capacity_qps,http_capacity_qps", file=file)
    direct, http = direct[0], http[-1]
    us = [float(direct["p50_ms"]), float(http["latency_p50_ms"]), float(direct["p99_ms"]), float(http["latency_p99_ms"])]
    values = [direct["rate_qps"]] + [f"{1e3 * ms:.1f}" for ms in us] + [row["held_qps"] for row in capacities]
    print(",".join(values), file=file)
PY
cat "$out/serve.csv"
