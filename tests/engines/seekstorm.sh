#!/usr/bin/env bash
# SeekStorm's server, from crates.io; see lib.sh. SEEKSTORM names a program that is installed already.
. "$(dirname "$0")/lib.sh"
seekstorm=${SEEKSTORM:-$dir/seekstorm/bin/seekstorm_server}
if [ ! -x "$seekstorm" ]; then
  # One of its parts needs AES instructions.
  RUSTFLAGS="-C target-cpu=native" CARGO_PROFILE_RELEASE_LTO=off cargo install seekstorm_server --version 4.0.1 --no-default-features --root "$dir/seekstorm"
fi
installed
# Keys are derived from this secret, which only this server has.
MASTER_KEY_SECRET=$(cat "$dir/secret" 2> /dev/null || (umask 077 && head -c 24 /dev/urandom | base64 | tee "$dir/secret"))
export MASTER_KEY_SECRET
port=$(free_port)
${SERVER:-} "$seekstorm" local_ip=127.0.0.1 local_port="$port" index_path="$dir/index" > "$dir/server.log" 2>&1 &
server=$!
wait_for "http://127.0.0.1:$port/api/v1/live"
if [ ! -s "$dir/key" ]; then
  prepare_documents text
  python3 - "$port" "$dir" << 'PY'
import base64, hashlib, itertools, json, os, pathlib, sys, urllib.request
port, folder = sys.argv[1], pathlib.Path(sys.argv[2])
def call(method, path, key, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"apikey": key, "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/{path}", data, headers, method=method)
    return urllib.request.urlopen(request, timeout=600).read().decode()
master = base64.b64encode(hashlib.sha256(os.environ["MASTER_KEY_SECRET"].encode()).digest()).decode()
most = 10**9
key = call("POST", "apikey", master, {"indices_max": 1, "indices_size_max": most, "documents_max": most, "operations_max": most, "rate_limit": None})
schema = [{"field": "id", "field_type": "Text", "store": True, "index_lexical": False},
          {"field": "text", "field_type": "Text", "store": False, "index_lexical": True}]
index = call("POST", "index", key, {"index_name": "test", "schema": schema, "similarity": "Bm25f", "tokenizer": "UnicodeAlphanumeric"})
with open(folder / "documents.jsonl", encoding="utf-8") as lines:
    while batch := [json.loads(line) for line in itertools.islice(lines, 5000)]:
        call("POST", f"index/{index}/doc", key, batch)
call("PATCH", f"index/{index}", key)
with open(os.open(folder / "key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
    file.write(key)
PY
fi
TANDEM_CREDENTIALS=$(cat "$dir/key")
export TANDEM_CREDENTIALS
drive "http://127.0.0.1:$port/api/v1/index/0" seekstorm
