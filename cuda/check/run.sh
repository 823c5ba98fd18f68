#!/usr/bin/env bash
# Checks and measures the CUDA device on the card of this machine, in at most nine minutes:
#
#   cuda/check/run.sh [OUT]
#
# Wants .cuda-check/programs.tar.gz, which `make cuda-check` packs elsewhere, a driver for CUDA 13 and Python
# with PyTorch; no Go, no network. cuda/README.md says the whole way. OUT (default $OUT, or .cuda-check/out)
# gets at most eight files: log.txt (all that was said), table.txt (what is printed last), steps.csv,
# products.csv, pair.csv, figure10.tar.gz (the results folder), logits.tar.gz and machine.txt. Every part is a
# process of its own with a time limit: one that fails or hangs does not keep the others from running. Exit
# code 0: all parts passed, 1: some did not, 3: there is no card.
#
# Times in steps.csv are of the caller, median and least, and of the card, median. The floor is the time that
# the weights and the KV of a step take at the bandwidth of copies; over_floor is the caller's median over it.
# Modes: graphs, eager, and own: graphs with products of our own only, without cuBLASLt.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${OUT:-.cuda-check/out}}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
python=${PYTHON:-python3}
cuda=${CUDA_HOME:-/usr/local/cuda}
seconds=520 # for all parts together
kept=170    # of them, for figure 10: parts before it can not have them
failed=()

# part FILE SECONDS NAME COMMAND...: runs one part, with a limit, as long as there is time; its output is kept
# in FILE among the programs.
part() {
	local file=$programs/$1 limit=$2 name=$3 left=$((seconds - kept - SECONDS))
	shift 3
	echo
	echo "== $name"
	[ "$limit" -le "$left" ] || limit=$left
	if [ "$limit" -lt 5 ]; then
		echo "-- $name: no time left"
		failed+=("$name: no time left")
		return 1
	fi
	local since=$SECONDS code
	timeout -k 5 "$limit" "$@" 2>&1 | tee "$file"
	code=${PIPESTATUS[0]}
	echo "-- $name: $((SECONDS - since)) s"
	[ "$code" = 0 ] && return
	failed+=("$name: exit code $code$([ "$code" = 124 ] && echo ", more than $limit s")")
	return 1
}

# join HEAD LINES FILE...: the first line that HEAD matches, and all that LINES does.
join() {
	local head=$1 lines=$2
	shift 2
	cat "$@" 2>/dev/null | grep -m1 "$head"
	cat "$@" 2>/dev/null | grep -E "$lines"
}

# Says where PyTorch's own cuBLASLt is, and its version. The first import can take long.
pytorch() {
	timeout 90 "$python" - <<'PYTHON'
import glob, os, torch
near = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib")
print(":".join(os.path.dirname(f) for f in glob.glob(os.path.join(near, "libcublasLt.so.*"))))
print("PyTorch", torch.__version__, "for CUDA", torch.version.cuda)
PYTHON
}

# Says what is not here; without a card, or with nothing to run on it, that is all.
look() {
	local missing=() code=3
	if tar -C "$programs" -xzf .cuda-check/programs.tar.gz 2>/dev/null; then
		timeout -k 5 60 "$programs/check" device >"$programs/device" 2>&1
		code=$?
		case $code in
			0) ;;
			124 | 137) missing+=("a card that answers: check device has said nothing in 60 s") ;;
			*) missing+=("$(tail -n 1 "$programs/device")") ;;
		esac
	else
		missing+=(".cuda-check/programs.tar.gz: make cuda-check packs it")
	fi
	command -v nvidia-smi >/dev/null || missing+=("nvidia-smi: no driver is installed, or it is not in PATH")
	pytorch >"$programs/torch" 2>/dev/null ||
		missing+=("PyTorch for $python (PYTHON names another); logits are not compared")
	sanitizer=$(command -v compute-sanitizer || echo "$cuda/bin/compute-sanitizer")
	[ -x "$sanitizer" ] || missing+=("compute-sanitizer in PATH or $cuda/bin (CUDA_HOME names another)")
	if [ ${#missing[@]} -gt 0 ]; then
		echo "missing on this machine:"
		printf '  %s\n' "${missing[@]}"
	fi
	[ "$code" = 0 ] && return
	echo "run.sh: nothing was checked: there is no device"
	exit 3
}

machine() {
	echo "commit $(cat "$programs/commit")"
	grep -v '^ok$' "$programs/device"
	nvidia-smi --format=csv,noheader \
		--query-gpu=name,driver_version,memory.total,memory.used,clocks.max.sm,clocks.max.mem,power.limit 2>&1
	"$cuda/bin/nvcc" --version 2>/dev/null | tail -n 2
	sed -n 2p "$programs/torch"
	uname -srm
}

# (a) Kernels against their references on two seeds, one of them fresh, the suite of devices, the models'
# logits against PyTorch.
checks() {
	local kernels way model models="" fresh
	fresh=$(date +%s)
	for kernels in rows products attention logits router library; do
		part "kernels-$kernels" 30 "kernels: $kernels" "$programs/check" $kernels 2 "$fresh"
	done
	for way in graphs eager cuBLASLt; do
		part "suite-$way" 60 "suite of devices: $way" "$programs/device.test" -test.timeout 55s \
			-test.run "^TestDevice\$/^$way\$"
	done
	for model in experiments/models/arith-{small,mid,large}; do
		[ ! -e "$model/model.safetensors" ] || models+=${models:+,}$model
	done
	mkdir -p "$programs/logits"
	part write 40 "logits" "$programs/device.test" -test.timeout 35s -test.run '^TestDevice$/^logits$' \
		-models "$models" -logits "$programs/logits"
	[ ! -s "$programs/torch" ] ||
		part agreement 60 "logits and PyTorch" "$python" cuda/check/logits.py "$programs/logits" ${models//,/ }
	tar -C "$programs/logits" -czf "$out/logits.tar.gz" .
}

# (b) Steps over the time that weights and KV take at the bandwidth of copies.
steps() {
	local shape mode
	part copy 20 copies "$programs/bench" copy
	rate=$(grep -A1 copy_bytes_s "$programs/copy" | tail -n 1)
	rate=${rate:-nan}
	for shape in 0.6b 32b 8b; do
		for mode in graphs eager own; do
			part "steps-$shape-$mode" 40 "steps of $shape, $mode" "$programs/bench" steps $shape $mode "$rate"
		done
	done
	join '^model,' '^(0.6b|8b|32b),' "$programs"/steps-{0.6b,8b,32b}-{graphs,eager,own} >"$out/steps.csv"
	part products 20 products "$programs/bench" products "$rate"
	grep -E '^(way|own|cublaslt),' "$programs/products" >"$out/products.csv"
}

# (c) Two models side by side.
pairs() {
	local where
	for where in whole parts; do
		part "pair-$where" 40 "two models: $where" "$programs/bench" pair 0.6b 32b $where
	done
	join '^small_' '^[0-9]+,' "$programs"/pair-{whole,parts} >"$out/pair.csv"
}

# (d) Figure 10: step times are measured, thresholds predicted, simulated and measured.
figure() {
	kept=0
	part figure 210 "figure 10" "$programs/tokenrouter" run cuda/check/figure10.toml --out "$programs/figure10"
	[ ! -d "$programs/figure10" ] || tar -C "$programs" -czf "$out/figure10.tar.gz" figure10
	part compared 20 "figure 10, compared" "$programs/tokenrouter" compare "$programs/figure10"
}

# (e) Reads and writes out of bounds, and races: in the kernels, and in whole steps.
sanitized() {
	[ -x "$sanitizer" ] || return
	local strict=("$sanitizer" --error-exitcode 9 --tool)
	part memcheck 45 memcheck "${strict[@]}" memcheck "$programs/check" own 1
	part racecheck 45 racecheck "${strict[@]}" racecheck "$programs/check" own 1
	part memcheck-steps 45 "memcheck of steps" "${strict[@]}" memcheck "$programs/bench" steps tiny own 1e12
}

# (f) What it came to.
table() {
	echo
	echo "== results"
	cat "$out/machine.txt"
	echo "copies: $rate bytes/s"
	grep -h spreads "$programs/agreement" 2>/dev/null
	awk -F, '$5 == 1 && ($2 == "graphs" || $2 == "eager" && $4 == 1) {
		printf "%-5s %-6s batch %2d: %9.1f us, %.2f times the floor\n", $1, $2, $4, $7, $11 }' "$out/steps.csv"
	awk -F, 'NR > 1 { printf "two models on %s and %s multiprocessors (0: all): ", $1, $2
		printf "small %.2f, large %.2f times as long\n", $6, $9 }' "$out/pair.csv"
	cat "$programs/compared" 2>/dev/null
	echo "targets: 32b decode with graphs at batch 1 to 8 at most 1.15 times the floor; 0.6b under 1000 us"
	if [ ${#failed[@]} -gt 0 ]; then printf 'failed: %s\n' "${failed[@]}"; else echo "all parts passed"; fi
	echo "$SECONDS s in all"
}

main() {
	programs=$(mktemp -d)
	trap 'rm -rf "$programs"' EXIT
	look
	machine | tee "$out/machine.txt"
	# The programs look for cuBLASLt where the toolkit is and in LD_LIBRARY_PATH; PyTorch brings one too.
	local near
	near=$(head -n 1 "$programs/torch")
	[ -z "$near" ] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$near
	checks
	steps
	pairs
	figure
	sanitized
	table | tee "$out/table.txt"
	[ ${#failed[@]} = 0 ]
	exit
}

main 2>&1 | tee "$out/log.txt"
exit "${PIPESTATUS[0]}"
