package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 20)...)
	if got, err := app.Image(file("a", png)); err != nil || !strings.HasPrefix(got, "data:image/png;base64,iVBORw0KGgo") {
		t.Errorf("a png without its ending: %.40s, %v", got, err)
	}
	for name, path := range map[string]string{
		"a text": file("b.png", []byte("text")), "an empty file": file("c.png", nil), "a folder": dir, "nothing": filepath.Join(dir, "d.png"),
		"too large": file("e.png", append(png, make([]byte, app.ImageLimit)...)), "svg, which can run code": file("f.svg", []byte("<svg/>")),
	} {
		if got, err := app.Image(path); err == nil {
			t.Errorf("%s is taken: %.40s", name, got)
		}
	}
}

// A limit that was not given is left to the task; a 0 that was given takes it away.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		want *api.RunLimits
	}{
		{"", nil},
		{"--max-turns 3", &api.RunLimits{MaxTurns: 3}},
		{"--max-turns 0", &api.RunLimits{MaxTurns: -1}},
		{"--max-cost 0.50 --idle-timeout 1m", &api.RunLimits{MaxCostMicros: 500000, IdleTimeoutMS: 60000}},
		{"--max-cost 0 --total-timeout 0", &api.RunLimits{MaxCostMicros: -1, TotalTimeoutMS: -1}},
		{"--idle-timeout 1us", &api.RunLimits{IdleTimeoutMS: 1}},
	} {
		a, _, _ := clitest.New(t)
		var r app.RunFlags
		cmd := &cobra.Command{Use: "run"}
		a.AddRunFlags(cmd, &r)
		if err := cmd.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		got, err := r.Limits(cmd)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: got %v %s, want no error and diff = \"\"", tt.args, err, diff)
		}
	}
}
