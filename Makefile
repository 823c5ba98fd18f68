# Needs Go, git and a C++ compiler; `make run` installs them with apt where they are missing.

GO     ?= go
FUZZ   ?= 10s
SHELL  := /bin/bash
.SHELLFLAGS := -euo pipefail -c
BIN    := bin/tokenrouter
ROOT   := $$([ "$$(id -u)" = 0 ] || echo sudo)
APT    := $(ROOT) apt-get update -qq && $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y
SPECS  := threshold schedules throughput-speed

.PHONY: run build needs needs-c test format vet lint unit race bench fuzz golden docs clean

# The main job: predicted, simulated and published throughput side by side, the four schedules, and throughput
# against speed, with their figures.
run: build
	@for spec in $(SPECS); do \
		echo "== experiments/$$spec.toml"; \
		$(BIN) run experiments/$$spec.toml; \
	done
	@echo
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
	$(GO) test ./...

# What runs in goroutines, under the race detector: the executor, and the workers of runs and of the search.
race: export CGO_ENABLED = 1
race:
	$(GO) test -race ./exec/...
	$(GO) test -race -short -run 'Workers|Shards|Resume' ./experiments/run
	$(GO) test -race -run 'Search|Plan|Tie' ./core/chain

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

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

clean:
	rm -rf bin
