package cpu

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryFree: what the machine has, at most what the control group leaves. Files in memory that nobody
// has looked at lately (inactive_file) are no use of it: they go when it is wanted. Names and units are those
// of proc(5) and of the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
func TestMemoryFree(t *testing.T) {
	const kib = 1024
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no group", nil, 3000 * kib},
		{"no limit", map[string]string{"memory.max": "max\n", "memory.current": "700\n"}, 3000 * kib},
		{"a limit", map[string]string{"memory.max": "9000\n", "memory.current": "7000\n"}, 2000},
		{"weights that were read", map[string]string{"memory.max": "9000\n", "memory.current": "7000\n",
			"memory.stat": "anon 10\nactive_file 4\ninactive_file 6000\n"}, 8000},
		{"above the limit", map[string]string{"memory.max": "10\n", "memory.current": "20\n"}, 0},
		{"a limit above the machine", map[string]string{"memory.max": "9000000000\n", "memory.current": "0\n"},
			3000 * kib},
		{"version 1", map[string]string{"memory/memory.limit_in_bytes": "9000\n",
			"memory/memory.usage_in_bytes": "7000\n",
			"memory/memory.stat":           "inactive_file 1\ntotal_inactive_file 500\n"}, 2500},
		{"version 1, no limit", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n",
			"memory/memory.usage_in_bytes": "7000\n"}, 3000 * kib},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("meminfo", "MemTotal:        9000 kB\nMemFree:            1 kB\nMemAvailable:    3000 kB\n")
			for name, text := range c.files {
				put(name, text)
			}
			if got := memoryFreeBytes(filepath.Join(dir, "meminfo"), dir); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
	if got := memoryFreeBytes("/none", "/none"); got != 0 {
		t.Errorf("%d bytes without /proc, want 0", got)
	}
}
