package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

const checkpoints = "../../exec/model/router/checkpoint/testdata/"

// TestRouterConvert: 132 of 10 to 12, 592 of 36 to 16, 272 of 16 to 16, twice 32 + 1088 + 1040 of 16 to 64 to
// 16, and 32 + 17 of the output: 5,365.
func TestRouterConvert(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r2r")
	shown := "router        r2r (hidden 12, top 10, width 16, 2 blocks, expanded 64)\n" +
		"parameters    5365\n" +
		"threshold     0.42\n" +
		"small model   nobody/tiny\n" +
		"note          made of the R2R checkpoint r2r.pt\n"
	if out := mustRun(t, "router", "convert", checkpoints+"r2r.pt", dir); out != shown {
		t.Errorf("convert prints\n%swant\n%s", out, shown)
	}
	if out := mustRun(t, "router", "info", dir); out != shown {
		t.Errorf("info prints\n%swant\n%s", out, shown)
	}
}

func TestRouterRefuses(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "want info or convert"},
		{"other command", []string{"make"}, `no command "make", want info or convert`},
		{"one argument", []string{"convert", checkpoints + "r2r.pt"}, "want a checkpoint and a folder to make"},
		{"no file", []string{"convert", none, "x"}, "does not exist"},
		{"code", []string{"convert", checkpoints + "code.pt", none}, `global "posix.system" is refused`},
		{"no checkpoint", []string{"convert", "router_test.go", none}, "want a zip file"},
		{"folder in use", []string{"convert", checkpoints + "r2r.pt", checkpoints}, "the folder is not empty"},
		{"no router", []string{"info", none}, "router.json: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Main(context.Background(), append([]string{"router"}, c.args...), &stdout, &stderr)
			if code != ExitMisuse || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
				t.Errorf("exit %d, %q, want %d and %s", code, stderr.String(), ExitMisuse, c.want)
			}
		})
	}
}
