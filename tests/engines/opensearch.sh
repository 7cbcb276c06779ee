#!/usr/bin/env bash
# A cluster of OpenSearch 2.19.6 on loopback, from Maven Central, without its start-up class: so no security manager, agent or
# start-up check runs. It is driven, one node is killed in mid-run and comes back, one is paused, and the queue is filled.
#
#   tests/engines/opensearch.sh TANDEM [FOLDER]
#
# FOLDER keeps what was installed. NODES (2), SHARDS (2), REPLICAS (0), HEAP (512m) and PROCESSORS (1, of each node) shape the
# cluster; COLLECTION and QUERIES name JSON lines with id and text, and a query a line, instead of the pages of docs. With
# START_ONLY the nodes stay until Enter is pressed.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
tandem=$(realpath "$1")
if [ $# -gt 1 ]; then dir=$(mkdir -p "$2" && realpath "$2"); keeps=1; else dir=$(mktemp -d); keeps=; fi
nodes=${NODES:-2} shards=${SHARDS:-2} replicas=${REPLICAS:-0}
pids=()
finish() {
  for pid in "${pids[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  if [ -n "$keeps" ]; then rm -rf "$dir/data"; else rm -rf "$dir"; fi
}
trap finish EXIT
skip() { echo "skipped: $1"; exit 0; }
fail() { echo "failed: $1" >&2; tail -n 5 "$dir"/*.log >&2; exit 1; }

for program in java javac mvn python3; do
  command -v "$program" > /dev/null || skip "$program is not installed"
done
java -version 2>&1 | grep -qE '"(17|18|19|2[0-9])' || skip 'Java 17 or newer is not installed'
if [ ! -e "$dir/jars/complete" ]; then
  cat > "$dir/pom.xml" << 'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tandem</groupId><artifactId>cluster</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.opensearch</groupId><artifactId>opensearch</artifactId><version>2.19.6</version></dependency>
<dependency><groupId>org.opensearch.plugin</groupId><artifactId>transport-netty4-client</artifactId><version>2.19.6</version></dependency>
<dependency><groupId>org.opensearch.plugin</groupId><artifactId>analysis-common</artifactId><version>2.19.6</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>2.25.4</version></dependency>
</dependencies></project>
XML
  timeout 180 mvn -q -B -f "$dir/pom.xml" dependency:copy-dependencies -DoutputDirectory="$dir/jars" > "$dir/mvn.log" 2>&1 ||
    skip 'the artifacts of OpenSearch cannot be fetched'
  touch "$dir/jars/complete"
fi
mkdir -p "$dir/classes"
javac -cp "$dir/jars/*" -d "$dir/classes" "$here/OpenSearchNode.java"
if [ -n "${INSTALL_ONLY:-}" ]; then exit; fi

mapfile -t ports < <(python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(2 * int(sys.argv[1]))]
for one in sockets: one.bind(("127.0.0.1", 0))
for one in sockets: print(one.getsockname()[1])' "$nodes")
seeds=$(for node in $(seq 0 $((nodes - 1))); do printf '127.0.0.1:%s,' "${ports[$((nodes + node))]}"; done)
url() { echo "http://127.0.0.1:${ports[$1]}"; }

# start NODE: one process, with a short queue, so that it can be filled.
start() {
  mkdir -p "$dir/data/$1"
  java -Xms"${HEAP:-512m}" -Xmx"${HEAP:-512m}" -XX:+UseSerialGC -cp "$dir/jars/*:$dir/classes" OpenSearchNode \
    cluster.name=tandem "node.name=n$1" "path.home=$dir/data/$1" network.host=127.0.0.1 "http.port=${ports[$1]}" \
    "transport.port=${ports[$((nodes + $1))]}" "discovery.seed_hosts=${seeds%,}" cluster.initial_cluster_manager_nodes=n0 \
    "node.processors=${PROCESSORS:-1}" thread_pool.search.queue_size=100 thread_pool.search.min_queue_size=100 \
    thread_pool.search.max_queue_size=100 > "$dir/node$1.log" 2>&1 &
  pids[$1]=$!
}

# ask METHOD PATH [BODY]: through the first node; prints the answer.
ask() {
  python3 -c '
import sys, urllib.request
url, method, body = sys.argv[1:4]
request = urllib.request.Request(url, body.encode() or None, {"content-type": "application/json"}, method=method)
print(urllib.request.urlopen(request, timeout=60).read().decode())' "$(url 0)$2" "$1" "${3:-}"
}

# healthy: waits until all nodes and shards are there.
healthy() {
  for _ in $(seq 120); do
    if ask GET "/_cluster/health?wait_for_nodes=$nodes&wait_for_status=green&timeout=1s" 2> /dev/null | grep -q '"status":"green"'; then return; fi
    kill -0 "${pids[0]}" 2> /dev/null || fail 'the first node ended'
    sleep 0.5
  done
  fail 'the cluster is not healthy'
}

for node in $(seq 0 $((nodes - 1))); do start "$node"; done
healthy
echo "$nodes nodes after $SECONDS s: $(for node in $(seq 0 $((nodes - 1))); do printf '%s ' "$(url "$node")"; done)"

# Plain words in lower case, so that both tokenizers find the same, and at most 40 in a document: Lucene keeps such lengths exactly,
# and rounds longer ones to a byte.
if [ -n "${COLLECTION:-}" ]; then
  cp "$COLLECTION" "$dir/documents.jsonl"
  cp "$QUERIES" "$dir/queries.txt"
else
  python3 - "$here/../.." "$dir" << 'PY'
import json, pathlib, random, re, sys
root, out = map(pathlib.Path, sys.argv[1:])
texts = set()
for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
    words = re.findall("[a-z]+", page.read_text().lower())
    texts |= {" ".join(words[at : at + 20 + at % 21]) for at in range(0, len(words), 40)}
texts = sorted(texts)
with open(out / "documents.jsonl", "w") as lines:
    for number, text in enumerate(texts):
        lines.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
chance = random.Random(1)
with open(out / "queries.txt", "w") as lines:
    for _ in range(300):
        words = chance.choice(texts).split()
        lines.write(" ".join(chance.sample(sorted(set(words)), min(3, len(set(words))))) + "\n")
PY
fi
ask PUT /docs '{"settings": {"number_of_shards": '"$shards"', "number_of_replicas": '"$replicas"', "refresh_interval": "-1",
  "requests.cache.enable": false, "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}}},
  "mappings": {"_source": {"enabled": false}, "properties": {"text": {"type": "text", "analyzer": "standard"}}}}' > /dev/null
python3 - "$(url 0)" "$dir/documents.jsonl" << 'PY'
import json, sys, urllib.request
def ask(path, body): return urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, body.encode(), {"content-type": "application/x-ndjson"}), timeout=60).read()
lines = []
def send():
    if lines and json.loads(ask("/docs/_bulk", "".join(lines)))["errors"]: sys.exit("a document was refused")
    lines.clear()
for line in open(sys.argv[2]):
    one = json.loads(line)
    lines.append(json.dumps({"index": {"_id": one["id"]}}) + "\n" + json.dumps({"text": one["text"]}) + "\n")
    if len(lines) == 1000: send()
send()
PY
ask POST /docs/_refresh > /dev/null
ask POST '/docs/_forcemerge?max_num_segments=1' > /dev/null
healthy
if [ -n "${START_ONLY:-}" ]; then read -r -p 'Enter ends the nodes. ' _; exit; fi

# live NAME RATE SECONDS [DIALECT]: an open loop through the first node. Other processes may delay the client, which then says so.
live() {
  "$tandem" live --target "$(url 0)/docs" --dialect "${4:-opensearch}" --queries "$dir/queries.txt" --log-format plain --rate "$2" \
    --seconds "$3" --warm-up 0 --deadline-ms 1000 -o "$dir/$1" > "$dir/$1.txt" 2>&1 || true
}
# count NAME COLUMN: a number of runs.csv.
count() {
  python3 -c '
import csv, sys
print(next(csv.DictReader(line for line in open(sys.argv[1]) if line[0] != "#"))[sys.argv[2]])' "$dir/$1/runs.csv" "$2"
}
check() { [ "$2" "$3" "$4" ] || { cat "$dir/$1.txt" >&2; fail "$1: $2 $3 $4"; }; }

# A young server is slow.
live young 20 10
live whole 20 5
check whole "$(count whole answered)" = "$(count whole planned)"
check whole "$(count whole empty)" -lt 10
live shared 20 5 msearch
check shared "$(count shared answered)" = "$(count shared planned)"

rm -rf "$dir/index"
"$tandem" index build "$dir/documents.jsonl" -o "$dir/index" > "$dir/index.log" 2>&1 || fail 'no index'
"$tandem" search "$dir/index" --queries "$dir/queries.txt" --log-format plain -k 10 --format trec > "$dir/tandem.run" 2> "$dir/search.log" || fail 'no search'
python3 - "$(url 0)" "$dir" << 'PY'
import json, sys, urllib.request
url, folder = sys.argv[1:]
queries = open(f"{folder}/queries.txt").read().splitlines()
lines = "".join("{}\n" + json.dumps({"query": {"match": {"text": query}}, "size": 10, "_source": False}) + "\n" for query in queries)
request = urllib.request.Request(url + "/docs/_msearch?max_concurrent_searches=1&search_type=dfs_query_then_fetch", lines.encode(), {"content-type": "application/x-ndjson"})
found = [{hit["_id"] for hit in one["hits"]["hits"]} for one in json.load(urllib.request.urlopen(request, timeout=60))["responses"]]
ours = {}
for line in open(f"{folder}/tandem.run"):
    number, _, document = line.split()[:3]
    ours.setdefault(number, set()).add(document)
ours = [ours.get(str(number), set()) for number in range(len(queries))]
same, all = sum(len(a & b) for a, b in zip(found, ours)), sum(len(a) for a in found)
print(f"answers: {same} of {all} documents are the same ({100 * same / all:.1f} %)")
if all < 9 * len(queries) or same < 0.97 * all: sys.exit("failed: the answers differ")
PY

live full 20000 1
check full "$(count full rejected)" -gt 0

last=$((nodes - 1))
(sleep 3; kill -STOP "${pids[$last]}"; sleep 2; kill -CONT "${pids[$last]}") &
live paused 20 8
wait %% 2> /dev/null || true
check paused "$(count paused missed)" -gt 10
check paused "$(count paused held)" = false
healthy

(sleep 4; kill -9 "${pids[$last]}") &
live killed 20 10
if [ "$shards" -gt 1 ] && [ "$replicas" = 0 ]; then
  check killed "$(count killed partial)" -gt 40
fi
check killed "$(count killed held)" = false
live lost 20 1
grep -q '/_shards/' "$dir/lost.txt" || fail 'the probe does not see lost shards'

start "$last"
healthy
live young 20 10
live back 20 5
check back "$(count back answered)" = "$(count back planned)"
for run in whole shared full paused killed back; do
  echo "$run: $(grep ' planned: ' "$dir/$run.txt")"
done
