#!/usr/bin/env bash
# Compiles the device, the check of its kernels and what measures it into .cuda with the toolkit that is there, and says what
# kernels take: build.sh TOOLKIT.
set -euo pipefail
cd "$(dirname "$0")/.."
toolkit=$1 out=.cuda
# A100 and H100 or H200 as they are; later ones compile the PTX when they start.
targets=(-gencode arch=compute_80,code=sm_80 -gencode "arch=compute_90,code=[sm_90,compute_90]")
flags=(-std=c++17 -O3 "${targets[@]}" -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unknown-pragmas,-fPIC
	-diag-suppress 177)
mkdir -p "$out/objects" "$out/lib"
compile() {
	object=$out/objects/$(basename "$(dirname "$1")")-$(basename "$1").o
	if [ -e "$object" ] && [ -z "$(find cuda exec/native -newer "$object" \
		\( -name '*.h' -o -name '*.cuh' -o -path "$1" \) -print -quit)" ]; then
		return
	fi
	"$toolkit/bin/nvcc" "${flags[@]}" -Xptxas -v -x cu -c "$1" -o "$object" 2>"$object.log" ||
		{ cat "$object.log" >&2; rm -f "$object"; return 1; }
}
for source in cuda/kernels/*.cu cuda/device/*.cu cuda/check/*.cpp cuda/check/bench/*.cpp; do compile "$source"; done

# What ptxas says of each kernel and target: registers, shared memory, spills. A kernel that spills fails.
python3 - "$out"/objects/kernels-*.log <<'PYTHON' | tee "$out/resources.txt"
import re
import sys

spilled = False
for name in sys.argv[1:]:
    kernel = target = spills = ""
    for line in open(name):
        if m := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            kernel, target = m.groups()
            # Mangled: ...(length)nameKernel, then I...E around its template arguments.
            name_of = re.search(r"\d([a-z]\w*?Kernel)(?:ILi(\d+)E)?", kernel)
            kernel = re.sub(r".*\d", "", name_of[1]) + (f"<{name_of[2]}>" if name_of[2] else "")
        if m := re.search(r"(\d+) bytes spill stores", line):
            spills = m.group(1)
        if m := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            bytes_shared = shared.group(1) if shared else 0
            print(f"{kernel:24} {target} {m.group(1):>4} registers {bytes_shared:>6} bytes shared "
                  f"{spills:>4} bytes spilled")
            spilled |= spills != "0"
sys.exit("a kernel spills registers" if spilled else 0)
PYTHON

ar rcs "$out/lib/libtokenrouter_cuda.a.new" "$out"/objects/kernels-*.o "$out"/objects/device-*.o
mv "$out/lib/libtokenrouter_cuda.a.new" "$out/lib/libtokenrouter_cuda.a"
cp "$toolkit/lib/libcudart_static.a" "$out/lib/"
for program in check bench; do
	g++ "$out/objects/$program"-*.o -L"$out/lib" -ltokenrouter_cuda -lcudart_static -ldl -lrt -lpthread \
		-o "$out/$program"
done
