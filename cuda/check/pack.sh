#!/usr/bin/env bash
# Packs what cuda/check/run.sh needs on a machine with a card into .cuda-check/programs.tar.gz: pack.sh, after
# make cuda. Names of Go's symbols are left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
${GO:-go} build -tags cuda -ldflags '-s -w' -o "$programs/tokenrouter" .
${GO:-go} test -c -tags cuda -ldflags '-s -w' -o "$programs/device.test" ./cuda
cp .cuda/check .cuda/bench .cuda/resources.txt "$programs"
strip "$programs/check" "$programs/bench"
git describe --always --abbrev=40 --dirty >"$programs/commit"
mkdir -p .cuda-check
tar -C "$programs" -czf .cuda-check/programs.tar.gz .
bytes=$(stat -c %s .cuda-check/programs.tar.gz) most=$((64 << 20))
echo "cuda-check: .cuda-check/programs.tar.gz, $bytes bytes"
[ "$bytes" -le "$most" ] || { echo "cuda-check: want at most $most bytes" >&2; exit 1; }
