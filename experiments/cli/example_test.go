package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"tokenrouter/experiments/cli"
)

// The best thresholds of R2R with p = 0.35 and steps of 6.0 and 27.9 ms for two requests in flight, the small
// model's threshold held at 1.
func ExampleMain() {
	args := "predict -n 2 --p 0.35 --latency 6.0ms,27.9ms --fix 1,_"
	code := cli.Main(context.Background(), strings.Fields(args), os.Stdout, os.Stderr)
	fmt.Println("exit", code)
	// Output:
	// N = 2, quantum 0.3 ms, exact
	//
	//    thresholds     tok/s  states
	//           1,1   98.9569      12
	// *         1,2  110.3227       3  best
	//
	// Thresholds 1,2:
	//   model  busy %  batches/s  mean batch  mean queue  mean wait ms  tok/s  share %
	//       0    46.1      76.89        1.43        0.00          0.00  71.71     65.0
	//       1    53.9      19.31        2.00        0.26          6.75  38.61     35.0
	//
	// Throughput 110.3227 tok/s, relative error at most 3e-14, method: elimination
	// exit 0
}
