package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/cuda"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/spec"
)

// backends are the worlds that a run may take place in, in the order of the help; only the built ones can be
// used.
var (
	backends = append([]string{"sim"}, spec.Backends...)
	built    = builtBackends()
)

func builtBackends() []string {
	if cuda.Built {
		return backends
	}
	return backends[:len(backends)-1]
}

// hardware is what runs real models, by name.
var hardware = map[string]func() (native.Backend, error){
	"cpu":  func() (native.Backend, error) { return cpu.Backend(), nil },
	"cuda": cuda.Backend,
}

// backendValue is the flag --backend of commands that run real models.
func backendValue() value[string] {
	return value[string]{kind: "name", parse: word(spec.Backends...)}
}

func addBackend(c *cobra.Command, v *value[string]) {
	c.Flags().Var(v, "backend", strings.Join(spec.Backends, " or ")+
		": what runs the models (default: as the file says, or cpu)")
	completeFlag(c, "backend", cobra.FixedCompletions(spec.Backends, cobra.ShellCompDirectiveNoFileComp))
}

// named is s on the backend of the flag, if that is given; s may be nil.
func named(s *spec.System, flag *value[string]) *spec.System {
	if s != nil && flag.set {
		s.Backend = flag.of
	}
	return s
}

// backendOf is what the models of s run on: given, unless that is none, or what s names.
func backendOf(given native.Backend, s *spec.System) (native.Backend, error) {
	if given != (native.Backend{}) {
		return given, nil
	}
	return backendNamed(s.Backend)
}

// backendNamed is a backend that has a device.
func backendNamed(name string) (native.Backend, error) {
	open := hardware[name]
	if open == nil {
		return native.Backend{}, badInput(fmt.Errorf("backend %q is %s", name, notBuilt(name)))
	}
	b, err := open()
	if err != nil {
		return b, badInput(fmt.Errorf("backend %q is %s", name, notBuilt(name)))
	}
	devices, err := b.Devices()
	if err == nil && len(devices) == 0 {
		err = fmt.Errorf("%s: %w: there is no card in this machine, or no driver for one", name, native.ErrNoDevice)
	}
	return b, err
}

// notBuilt says that a backend is not in this program, and what to do about it.
func notBuilt(name string) string {
	text := "not built in, want " + strings.Join(built, ", ")
	if name == "cuda" {
		text += "; make cuda builds a program that has it, bin/tokenrouter-cuda"
	}
	return text
}
