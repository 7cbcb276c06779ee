#!/usr/bin/env bash
# real_files.sh DIR: fetches the files of real_files.tsv from GitHub into DIR/real and checks them. Needs curl and sha256sum.
set -euo pipefail
list=$(dirname "$0")/real_files.tsv
folder=$1/real
grep -v '^#' "$list" | while IFS=$'\t' read -r repository commit path sum _; do
  file=$folder/$repository/$path
  mkdir -p "$(dirname "$file")"
  [ -s "$file" ] || curl --fail --silent --show-error --location --output "$file" \
    "https://raw.githubusercontent.com/$repository/$commit/$path"
  echo "$sum  $file" | sha256sum --check --quiet
done
