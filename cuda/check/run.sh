#!/usr/bin/env bash
# Checks and measures the CUDA device on the card of this machine, in at most nine minutes:
#
#   cuda/check/run.sh [OUT]
#
# Wants .cuda-check/programs.tar.gz, which `make cuda-check` packs elsewhere, CUDA 13 and Python with PyTorch;
# no Go, no network. OUT (default $OUT, or .cuda-check/out) gets at most eight files: log.txt (all that was
# said), table.txt (what is printed last), steps.csv, products.csv, pair.csv, figure10.tar.gz (the results
# folder), logits.tar.gz and machine.txt. A part that fails or takes too long does not keep the others from
# running; the exit code says how many did.
#
# Times in steps.csv are of the caller, median and least, and of the card, median. The floor is the time that
# the weights and the KV of a step take at the bandwidth of copies; over_floor is the caller's median over it.
# Modes: graphs, eager, and graphs with products of our own only, without cuBLASLt.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${OUT:-.cuda-check/out}}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
exec > >(tee "$out/log.txt") 2>&1
began=$SECONDS
failed=()

missing=()
[ -e .cuda-check/programs.tar.gz ] || missing+=(".cuda-check/programs.tar.gz: make cuda-check packs it")
command -v nvidia-smi >/dev/null || missing+=("nvidia-smi: no driver is installed")
nvidia-smi -L 2>/dev/null | grep -q GPU || missing+=("a card: nvidia-smi -L lists none")
python=${PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null ||
	missing+=("PyTorch for $python (PYTHON names another); logits are not compared")
cuda=${CUDA_HOME:-/usr/local/cuda}
sanitizer=$(command -v compute-sanitizer || echo "$cuda/bin/compute-sanitizer")
[ -x "$sanitizer" ] || missing+=("compute-sanitizer in PATH or $cuda/bin (CUDA_HOME names another)")

# part FILE SECONDS NAME COMMAND...: runs one part, with a limit, as long as there is time; its output is kept
# in FILE among the programs.
part() {
	local file=$programs/$1 limit=$2 name=$3 left=$((530 - (SECONDS - began)))
	shift 3
	echo
	echo "== $name"
	[ "$limit" -le "$left" ] || limit=$left
	if [ "$limit" -lt 5 ]; then
		echo "$name: no time left"
		failed+=("$name: no time left")
		return 1
	fi
	local since=$SECONDS code=0
	timeout -k 5 "$limit" "$@" 2>&1 | tee "$file"
	code=${PIPESTATUS[0]}
	echo "-- $name: $((SECONDS - since)) s"
	[ "$code" = 0 ] && return
	failed+=("$name: exit code $code$([ "$code" = 124 ] && echo ", more than $limit s")")
	return 1
}

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
if [ -e .cuda-check/programs.tar.gz ]; then
	tar -C "$programs" -xzf .cuda-check/programs.tar.gz
	"$programs/check" 1 >/dev/null 2>"$programs/device"
	code=$?
	[ "$code" != 3 ] || missing+=("$(cat "$programs/device")")
	[ "$code" -le 3 ] || missing+=("a C library for the programs: $(cat "$programs/device")")
fi
if [ ${#missing[@]} -gt 0 ]; then
	echo "missing on this machine:"
	printf '  %s\n' "${missing[@]}"
fi
if [ ! -e "$programs/check" ] || [ "${code:-3}" -ge 3 ]; then
	echo "run.sh: nothing was checked: there is no device"
	exit 3
fi

{
	echo "commit $(cat "$programs/commit")"
	nvidia-smi --format=csv --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem
	"$cuda/bin/nvcc" --version 2>/dev/null | tail -2
	"$python" -c 'import torch; print("PyTorch", torch.__version__, torch.version.cuda)' 2>/dev/null
	uname -srm
} | tee "$out/machine.txt"
# cuBLASLt comes with PyTorch too.
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$("$python" - 2>/dev/null <<'PYTHON'
import glob, os, torch
near = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib")
print(":".join(os.path.dirname(f) for f in glob.glob(os.path.join(near, "libcublasLt.so.*"))))
PYTHON
)
export LD_LIBRARY_PATH

# (a) Kernels against their references on two fresh seeds, the suite of devices, the models' logits against
# PyTorch.
for seed in 2 "$(date +%s)"; do part kernels 40 "kernels, seed $seed" "$programs/check" "$seed"; done
models=$(ls -d experiments/models/*/config.json | xargs -n1 dirname | while read -r m; do
	[ -e "$m/model.safetensors" ] && echo "$m"; done | head -3 | paste -sd,)
mkdir -p "$programs/logits"
part suite 90 "suite of devices" "$programs/device.test" -test.timeout 80s -models "$models" \
	-logits "$programs/logits"
for model in ${models//,/ }; do
	file=$programs/logits/$(basename "$model").json
	[ ! -e "$file" ] || part "agreement-$(basename "$model")" 30 "logits of $model" \
		"$python" cuda/check/logits.py "$model" "$file"
done
tar -C "$programs/logits" -czf "$out/logits.tar.gz" .

# (b) Steps over the time that weights and KV take at the bandwidth of copies.
part copy 30 copies "$programs/bench" copy
rate=$(grep -A1 copy_bytes_s "$programs/copy" | tail -1)
for shape in 0.6b 8b 32b; do
	part "steps-$shape" 60 "steps of $shape" "$programs/bench" steps "$shape" "$rate"
done
grep -h -m1 '^model,' "$programs"/steps-* | head -1 >"$out/steps.csv"
grep -hE '^(0.6b|8b|32b),' "$programs"/steps-* >>"$out/steps.csv"
part products 30 products "$programs/bench" products "$rate"
grep -E '^(way|own|cublaslt),' "$programs/products" >"$out/products.csv"

# (c) Two models side by side.
part pair 60 "two models" "$programs/bench" pair 0.6b 32b
grep -E '^(small_|[0-9]+,)' "$programs/pair" >"$out/pair.csv"

# (d) Figure 10: step times are measured, thresholds predicted, simulated and measured.
part figure 200 "figure 10" "$programs/tokenrouter" run cuda/check/figure10.toml --out "$programs/figure10"
"$programs/tokenrouter" compare "$programs/figure10" | tee "$programs/compared"
[ ! -d "$programs/figure10" ] || tar -C "$programs" -czf "$out/figure10.tar.gz" figure10

# (e) Reads and writes out of bounds, and races, in the kernels.
for tool in memcheck racecheck; do
	[ -x "$sanitizer" ] || continue
	part "$tool" 45 "$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$programs/check" 1
done

# (f) What it came to.
{
	echo
	echo "== results"
	cat "$out/machine.txt"
	echo "copies: $rate bytes/s"
	grep -h spreads "$programs"/agreement-* 2>/dev/null
	awk -F, '$5 == 1 && ($2 == "graphs" || $2 == "eager" && $4 == 1) {
		printf "%-5s %-6s batch %2d: %9.1f us, %.2f times the floor\n", $1, $2, $4, $7, $11 }' "$out/steps.csv"
	awk -F, 'NR > 1 { printf "two models on %s and %s multiprocessors (0: all): ", $1, $2
		printf "small %.2f, large %.2f times as long\n", $6, $9 }' "$out/pair.csv"
	cat "$programs/compared"
	echo "targets: 32b decode with graphs at batch 1 to 8 at most 1.15 times the floor; 0.6b under 1000 us"
	if [ ${#failed[@]} -gt 0 ]; then printf 'failed: %s\n' "${failed[@]}"; else echo "all parts passed"; fi
	echo "$((SECONDS - began)) s in all"
} | tee "$out/table.txt"
exit ${#failed[@]}
