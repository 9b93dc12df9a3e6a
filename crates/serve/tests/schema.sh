#!/bin/sh
# Has schemathesis ask a fresh server on loopback everything that its OpenAPI document describes, right and wrong.
#
#   schema.sh DPCL SCHEMATHESIS [OPTION…]
set -eu
program=$1 schemathesis=$2
shift 2
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT INT TERM
"$program" serve --dir "$folder/served" --listen 127.0.0.1:0 --set method=er --set width=4 --set size=16 --set memory=20 \
    --set batch=8 --set updates=1 2>"$folder/log" &
server=$!
address=
while [ -z "$address" ]; do
    kill -0 "$server"
    address=$(sed -n 's/.*"address":"\([^"]*\)".*"listening".*/\1/p' "$folder/log" | head -n 1)
    sleep 0.1
done
# What an image is no schema can say: bodies that fit the schema and are none are refused, and rightly so.
"$schemathesis" run "http://$address/openapi.json" --checks all --exclude-checks positive_data_acceptance --max-examples "${EXAMPLES:-60}" --no-color "$@"
