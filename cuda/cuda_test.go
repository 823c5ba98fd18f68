package cuda

import (
	"errors"
	"flag"
	"os/exec"
	"strings"
	"testing"

	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// models are folders of which the logits are written, for a comparison with PyTorch: cuda/check/run.sh.
var (
	models = flag.String("models", "", "model folders, separated by commas, whose logits are written to -logits")
	logits = flag.String("logits", "", "folder for the logits of -models")
)

// TestDevice: without CUDA, or without a driver, it is said that there is no device; nothing is broken. With
// one it passes the suite of native devices, with graphs and without, and, as long as its products are its
// own, gives the same bits in any batch.
func TestDevice(t *testing.T) {
	b, err := Backend()
	if err == nil {
		devices, failed := b.Devices()
		if failed != nil && !errors.Is(failed, native.ErrNoDevice) { // a driver that is too old
			t.Fatal(failed)
		}
		if len(devices) > 0 {
			t.Logf("%+v", devices)
			onCard(t, b)
			return
		}
		_, err = b.Open(native.Options{})
	}
	if !errors.Is(err, native.ErrNoDevice) {
		t.Errorf("error %v, want %v", err, native.ErrNoDevice)
	}
}

// TestCheckWithoutCard: where there is no card, the script that checks one says so, and what is missing.
func TestCheckWithoutCard(t *testing.T) {
	if _, err := exec.LookPath("nvidia-smi"); err == nil {
		return // it would check the card, for minutes
	}
	output, err := exec.Command("bash", "check/run.sh", t.TempDir()).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error %v, want exit code 3", err)
	}
	for _, want := range []string{"missing on this machine:", "nvidia-smi: no driver is installed",
		"nothing was checked: there is no device"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("%s\nwant %q in it", output, want)
		}
	}
}

func onCard(t *testing.T, b native.Backend) {
	suite := func(kernels string, sameBits bool) nativetest.Suite {
		return nativetest.Suite{Backend: b, Options: native.Options{Kernels: kernels}, SameBits: sameBits}
	}
	t.Run("graphs", func(t *testing.T) { suite("graphs own", true).Run(t) })
	t.Run("eager", func(t *testing.T) { suite("eager own", true).RunSteps(t) })
	t.Run("cuBLASLt", func(t *testing.T) { suite("graphs", false).Run(t) })
	if *models != "" {
		t.Run("logits", func(t *testing.T) { suite("graphs", false).WriteLogits(t, *models, *logits) })
	}
}
