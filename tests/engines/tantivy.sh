#!/usr/bin/env bash
# tantivy serve, of tantivy-cli from crates.io; see lib.sh. TANTIVY names a program that is installed already.
. "$(dirname "$0")/lib.sh"
tantivy=${TANTIVY:-$dir/tantivy/bin/tantivy}
if [ ! -x "$tantivy" ]; then
  CARGO_PROFILE_RELEASE_LTO=off cargo install tantivy-cli --version 0.24.0 --root "$dir/tantivy"
fi
installed
if [ ! -s "$dir/index/meta.json" ] || ! grep -q segment_id "$dir/index/meta.json"; then
  prepare_documents text
  mkdir -p "$dir/index"
  # `tantivy new` asks questions on a terminal; this is what it would write.
  cat > "$dir/index/meta.json" << 'META'
{"index_settings": {"docstore_compression": "lz4", "docstore_blocksize": 16384}, "segments": [], "opstamp": 0, "schema": [
  {"name": "id", "type": "text", "options": {"indexing": {"record": "basic", "fieldnorms": false, "tokenizer": "raw"}, "stored": true, "fast": false}},
  {"name": "text", "type": "text", "options": {"indexing": {"record": "freq", "fieldnorms": true, "tokenizer": "default"}, "stored": false, "fast": false}}]}
META
  "$tantivy" index -i "$dir/index" -f "$dir/documents.jsonl" -t 1 -m 200000000 > "$dir/index.log" 2>&1
fi
port=$(free_port)
${SERVER:-} "$tantivy" serve -i "$dir/index" --host 127.0.0.1 -p "$port" > "$dir/server.log" 2>&1 &
server=$!
wait_for "http://127.0.0.1:$port/api/?q=program&nhits=1"
# It has eight threads per core, and each keeps its connection; further connections would never be answered.
drive "http://127.0.0.1:$port" tantivy --connections $((8 * ${SERVER_CORES:-$(nproc)}))
