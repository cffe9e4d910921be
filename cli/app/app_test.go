package app_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestHomes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems keep these elsewhere")
	}
	for _, tt := range []struct {
		name, variable string
		env            []string
		want           string
	}{
		{"the XDG folder", "XDG_DATA_HOME", []string{"XDG_DATA_HOME=/data"}, "/data/roost"},
		{"a relative one does not count", "XDG_DATA_HOME", []string{"XDG_DATA_HOME=data", "HOME=/me"}, "/me/.local/share/roost"},
		{"without it", "XDG_CONFIG_HOME", []string{"HOME=/me"}, "/me/.config/roost"},
	} {
		a, _, _ := clitest.New(t, tt.env...)
		fallback := map[string]string{"XDG_DATA_HOME": ".local/share", "XDG_CONFIG_HOME": ".config"}[tt.variable]
		if got, err := a.Home(tt.variable, fallback); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// What -q leaves out, and what it does not.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		quiet, json bool
		want        string
	}{
		{false, false, "progress x\n! a warning\nroost: a\n  b\n"},
		{true, false, "! a warning\nroost: a\n  b\n"},
		{true, true, `{"kind":"warning","text":"a\nwarning","type":"notice"}` + "\n" +
			`{"type":"about:blank#c","title":"a","code":"c","detail":"b","suggestions":[],"retryable":false}` + "\n"},
	} {
		a, out, errs := clitest.New(t)
		a.Flags.Quiet, a.Flags.JSON = tt.quiet, tt.json
		if !tt.json {
			a.Say("progress %s", "x")
		}
		a.Warn("a\nwarning")
		a.Tell(&failure.Failure{Code: "c", What: "a", Why: "b"})
		if diff := cmp.Diff(tt.want, errs.String()); diff != "" || out.Len() > 0 {
			t.Errorf("quiet %v, json %v: %s", tt.quiet, tt.json, diff)
		}
	}
}
