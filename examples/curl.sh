#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks for a file's type with curl: a JSON header that names the class, and the file's bytes behind it.
# usage: examples/curl.sh FILE [CLASS] [HOST:PORT]
set -euo pipefail
file=$1
class=${2:-online}
address=${3:-127.0.0.1:8000}

size=$(wc -c < "$file")
# A row of a BYTES tensor begins with its length, four bytes, the lowest first.
length=$(printf '\\x%02x' $((size & 255)) $((size >> 8 & 255)) $((size >> 16 & 255)) $((size >> 24 & 255)))
header=$(printf '{"inputs":[%s,%s],"outputs":[%s,%s]}' \
  '{"name":"CLASS","datatype":"BYTES","shape":[1,1],"data":["'"$class"'"]}' \
  '{"name":"content","datatype":"BYTES","shape":[1,1],"parameters":{"binary_data_size":'$((size + 4))'}}' \
  '{"name":"label"}' '{"name":"score"}')
{
  printf '%s' "$header"
  printf '%b' "$length"
  cat "$file"
} | curl --silent --show-error --fail-with-body --data-binary @- \
  --header "Inference-Header-Content-Length: ${#header}" "http://$address/v2/models/file_type/infer"
printf '\n'
