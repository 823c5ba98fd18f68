package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tokenrouter/experiments/spec"
)

// systemFlags describe a system of real models without a file.
type systemFlags struct {
	small, large, router string
	models               []string
	algorithm            value[string]
	threshold            value[float64]
	lambda               value[[]float64]
	weights              value[string]
	contextMax           value[int]
	backend              value[string]
}

// contextMost only keeps a slip of the finger from asking for all memory there is.
const contextMost = 1 << 24

func newSystemFlags() systemFlags {
	return systemFlags{
		algorithm:  value[string]{kind: "name", parse: word(spec.SystemAlgorithms...)},
		threshold:  value[float64]{kind: "number", parse: threshold},
		lambda:     value[[]float64]{kind: "numbers", parse: lambda},
		weights:    value[string]{of: "bf16", text: "bf16", kind: "type", parse: word("bf16", "int8")},
		contextMax: value[int]{kind: "tokens", parse: integer(2, contextMost)},
		backend:    backendValue(),
	}
}

// add gives the flags to a command.
func (f *systemFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.small, "small", "", "model folder of the small model")
	flags.StringVar(&f.large, "large", "", "model folder of the large model")
	flags.StringArrayVar(&f.models, "model", nil, "model folder of a further model, for me")
	flags.Var(&f.algorithm, "algorithm", strings.Join(spec.SystemAlgorithms, ", ")+
		" (default: the router's, or the only model)")
	flags.Var(&f.threshold, "threshold", "of the algorithm (default: the router's)")
	flags.StringVar(&f.router, "router", "", "router folder, for r2r, citer and collm")
	flags.Var(&f.lambda, "lambda", "weight of each model, such as 0.5,0.3,0.2, for me (default: all the same)")
	flags.Var(&f.weights, "weights", "bf16 or int8: how matrices are kept")
	flags.Var(&f.contextMax, "context-max",
		"most tokens of prompt and answer (default: 4096 or the models' own)")
	addBackend(c, &f.backend)
	for _, name := range []string{"small", "large", "model", "router"} {
		completeFlag(c, name, folders)
	}
	for name, words := range map[string][]string{
		"algorithm": spec.SystemAlgorithms, "weights": {"bf16", "int8"},
	} {
		completeFlag(c, name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// systemFlagNames are those of the flags that a file takes the place of.
var systemFlagNames = []string{
	"small", "large", "model", "algorithm", "threshold", "router", "lambda", "weights", "context-max",
}

// load reads the file that the arguments name, or makes a system of the flags.
func (f *systemFlags) load(args []string, flags *pflag.FlagSet) (*spec.System, error) {
	if len(args) == 0 {
		s, err := f.system()
		return named(s, &f.backend), err
	}
	for _, name := range systemFlagNames {
		if flags.Changed(name) {
			return nil, misuse("--%s and %s: want flags or a file, not both", name, args[0])
		}
	}
	s, err := spec.LoadSystem(args[0])
	return named(s, &f.backend), badInput(err)
}

// system is what the flags describe.
func (f *systemFlags) system() (*spec.System, error) {
	var models []spec.SystemModel
	var given []string // the flag of each model
	add := func(flag, dir string) {
		if dir == "" {
			return
		}
		m := spec.Folder(dir)
		m.Int8 = f.weights.of == "int8"
		same := func(o spec.SystemModel) bool { return o.Name == m.Name }
		for number := 2; slices.ContainsFunc(models, same); number++ {
			m.Name = spec.Folder(dir).Name + " " + strconv.Itoa(number)
		}
		models, given = append(models, m), append(given, flag)
	}
	add("--small", f.small)
	add("--large", f.large)
	for _, dir := range f.models {
		add("--model", dir)
	}
	s := spec.NewSystem(models...)
	s.ContextMax = f.contextMax.of
	s.Router = spec.Router{
		Algorithm: f.algorithm.of, Threshold: f.threshold.of, HasThreshold: f.threshold.set, Dir: f.router,
		Weights: f.lambda.of,
	}
	if len(models) == 1 && s.Router.Algorithm == "" {
		s.Router.Algorithm = "small"
	}
	var errs []error
	for _, fault := range s.Faults() {
		errs = append(errs, fmt.Errorf("%s: %s", flagOf(fault.Key, given), fault.Text))
	}
	if len(errs) > 0 {
		return nil, misuseError{errors.Join(errs...), true}
	}
	return s, nil
}

// flagOf is the flag that stands for a key of a file; given has that of each model.
func flagOf(key string, given []string) string {
	flags := map[string]string{
		"models": "--small, --large, --model", "router.algorithm": "--algorithm", "router.threshold": "--threshold",
		"router.dir": "--router", "router.weights": "--lambda",
	}
	if flag, ok := flags[key]; ok {
		return flag
	}
	var i int
	if _, err := fmt.Sscanf(key, "models[%d]", &i); err == nil && i < len(given) {
		return given[i]
	}
	panic("cli: no flag for " + key)
}

func threshold(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= spec.ThresholdMin && x <= spec.ThresholdMax) {
		return 0, fmt.Errorf("want a number from %d to %d", spec.ThresholdMin, spec.ThresholdMax)
	}
	return x, nil
}

// lambda parses weights separated by ",".
func lambda(s string) ([]float64, error) {
	var weights []float64
	for i, part := range strings.Split(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(x >= 0 && x <= 1e12) {
			return nil, fmt.Errorf("entry %d is %q, want a number from 0", i+1, part)
		}
		weights = append(weights, x)
	}
	return weights, nil
}
