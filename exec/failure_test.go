package exec_test

import (
	"errors"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// TestDeviceError: an error of a device ends the requests of that pass as failed, with their
// tokens kept, and nobody else; it is reported with the model's name.
func TestDeviceError(t *testing.T) {
	for _, nodes := range [][]int{{0, 0}, {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			small := &scripted{script: func(id uint64, position int32) core.Result {
				return core.Result{Token: position, Score: map[bool]float64{true: 1}[id < 3 && position == 3]}
			}}
			large := &scripted{script: counting, fail: func(pass int) error {
				if pass == 1 {
					return errDevice
				}
				return nil
			}}
			s := start(t, config(nodes...), 3*time.Millisecond, []exec.Device{small, large}, nil)
			first, second := s.submit(1, []int32{1, 2}, 4), s.submit(2, []int32{1, 2}, 4)
			third := s.submit(3, []int32{1, 2}, 4)
			s.settle(time.Second)
			again := s.submit(1, []int32{1, 2}, 3, func(r *exec.Request) { r.Entry = 1 }) // the device goes on
			s.settle(time.Second)
			s.stop()
			first.ended(core.Failed, core.DeviceFailed, 2)
			second.ended(core.Failed, core.DeviceFailed, 2)
			third.ended(core.Finished, core.TokensMax, 2, 3, 4, 5)
			again.ended(core.Finished, core.TokensMax, 2, 3, 4)
			if len(s.failures) != 1 || !errors.Is(s.failures[0], errDevice) ||
				!strings.Contains(s.failures[0].Error(), "model 1 (large)") {
				t.Errorf("reported %v, want one of model 1 (large): %v", s.failures, errDevice)
			}
		})
	}
}

// severed is a link that loses hand-offs.
type severed struct{ exec.Link }

var errLink = errors.New("no route")

// Send implements exec.Link.
func (l severed) Send(m exec.Message) error {
	if m.Handoff != nil {
		return errLink
	}
	return l.Link.Send(m)
}

// TestLinkError: a lost hand-off is reported, naming the node; its request fails at once and its
// pages are free again; others go on.
func TestLinkError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := &scripted{script: func(id uint64, position int32) core.Result {
			return core.Result{Token: position, Score: float64(id % 2)}
		}}
		s := start(t, config(0, 1), time.Millisecond, []exec.Device{small, &scripted{script: counting}},
			func(c *exec.Config) {
				if c.Core.Node == 0 {
					c.Links[1] = severed{c.Links[1]}
				}
			})
		lost, other := s.submit(1, []int32{1}, 4), s.submit(2, []int32{1}, 4)
		s.settle(time.Second)
		other.ended(core.Finished, core.TokensMax, 1, 2, 3, 4)
		if len(s.failures) != 1 || !errors.Is(s.failures[0], errLink) ||
			!strings.Contains(s.failures[0].Error(), "node 1") {
			t.Errorf("reported %v, want one of node 1: %v", s.failures, errLink)
		}
		lost.ended(core.Failed, core.LinkFailed)
		s.stop()
	})
}

// panicking marks the child process of TestDevicePanic.
const panicking = "TOKENROUTER_TEST_DEVICE_PANIC"

// TestDevicePanic: a panic of a device is a fault of the program. Nothing swallows it: the
// process ends, and says why. The test runs itself again as a child that does that.
func TestDevicePanic(t *testing.T) {
	if os.Getenv(panicking) != "" {
		device := deviceFunc(func(*exec.Pass) error { panic("the device has lost its mind") })
		s := start(t, config(), 0, []exec.Device{device, device}, nil)
		s.submit(1, []int32{1}, 4)
		time.Sleep(time.Minute)
		return
	}
	child := osexec.Command(os.Args[0], "-test.run=^TestDevicePanic$")
	child.Env = append(os.Environ(), panicking+"=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: the device has lost its mind") {
		t.Errorf("child: %v\n%s\nwant it to die of the panic", err, out)
	}
}
