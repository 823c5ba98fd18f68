package exec_test

import (
	"strings"
	"testing"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// TestNewRefuses: devices and links that do not fit the models are refused with the node and what
// is wrong.
func TestNewRefuses(t *testing.T) {
	device := &scripted{}
	link := sender(nil)
	two := func(node int) core.Config {
		c := config(0, 1)
		c.Node = node
		return c
	}
	behind := config(1, 1)
	behind.Node = 1
	for name, c := range map[string]struct {
		config exec.Config
		want   string
	}{
		"too few devices": {
			exec.Config{Core: config(), Devices: []exec.Device{device}}, "1 devices for 2 models"},
		"no device for its own model": {
			exec.Config{Core: config(), Devices: []exec.Device{device, nil}},
			"model 1 (large) of node 0: device false"},
		"a device for another's model": {
			exec.Config{Core: two(0), Devices: []exec.Device{device, device}, Links: []exec.Link{nil, link}},
			"model 1 (large) of node 1: device true"},
		"no link": {
			exec.Config{Core: two(0), Devices: []exec.Device{device, nil}}, "node 0 has no link to node 1"},
		"no link to a front": {
			exec.Config{Core: behind, Devices: []exec.Device{device, device}}, "node 1 has no link to node 0"},
		"a link to itself": {
			exec.Config{Core: two(1), Devices: []exec.Device{nil, device}, Links: []exec.Link{link, link}},
			"node 1 has a link to itself"},
		"negative Gather": {
			exec.Config{Core: config(), Devices: []exec.Device{device, device}, Gather: -time.Second}, "Gather = -1s"},
		"what the core refuses": {exec.Config{}, "core: 0 models"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New: %v, want %q in it", err, c.want)
			}
		})
	}
}
