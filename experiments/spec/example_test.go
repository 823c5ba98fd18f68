package spec_test

import (
	"fmt"

	"tokenrouter/experiments/spec"
)

func ExampleParse() {
	s, err := spec.Parse("what-if.toml", `
name = "what-if"
models = [
  { name = "SLM", latency = { kind = "constant", step = "6ms" } },
  { name = "LLM", latency = { kind = "constant", step = "27.9ms" } },
]
router = { algorithm = "r2r", p = 0.2 }
workload = { kind = "closed", requests = 100, prompt = 100, output = 256 }
policy = { kind = "delayed" }
sweep = { concurrency = [4], thresholds = "1,_" }
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range s.Points {
		fmt.Println(p.Key)
	}
	// Output:
	// concurrency=4 thresholds=1,1
	// concurrency=4 thresholds=1,2
	// concurrency=4 thresholds=1,3
	// concurrency=4 thresholds=1,4
}

func ExampleProblems() {
	_, err := spec.Parse("what-if.toml", `
name = "what-if"
models = [{ name = "SLM", latency = { kind = "constant", step = 6 } }]
router = { algorithm = "single", model = "SLM" }
workload = { kind = "closed", concurency = 4, requests = 100, prompt = 100, output = 256 }
policy = { kind = "eager" }
`)
	fmt.Println(err)
	// Output:
	// spec what-if.toml:3: models[0].latency.step = 6, want a duration with its unit, such as "6.0ms"
	// spec what-if.toml:5: workload.concurency = 4, unknown key, the nearest known is workload.concurrency
	// spec what-if.toml:5: workload.concurrency: missing, want how many requests may be in flight
}
