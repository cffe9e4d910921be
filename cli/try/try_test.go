package try

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/service"
)

// survived is a demonstration as it should go: two commits and a command without
// an outcome before the kill, more of everything after the restart.
func survived(t *testing.T) (tr *trial, killed, resumed childRun, before, after onDisk) {
	t.Helper()
	a, _, _ := clitest.New(t)
	dir := t.TempDir()
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("[]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const note = "Written by the scripted model, before the kill."
	before = onDisk{diary: 1, note: note, Evidence: service.Evidence{
		Folder:  dir,
		Status:  "running",
		Commits: []string{"1", "2"},
		UI:      []string{"u1"},
		API:     []string{"a1", "a2"},
		Calls:   map[string]string{"c1": "ok", "c2": "unknown"},
		Results: map[string]int{"c1": 1},
	}}
	after = onDisk{diary: 1, note: note, Evidence: service.Evidence{
		Folder:  dir,
		Status:  "completed",
		Commits: []string{"1", "2", "3"},
		UI:      []string{"u1", "u2"},
		API:     []string{"a1", "a2", "a3"},
		Calls:   map[string]string{"c1": "ok", "c2": "unknown"},
		Results: map[string]int{"c1": 1, "c2": 1},
	}}
	return &trial{a: a}, childRun{seq: 2, killed: true}, childRun{}, before, after
}

func (t *trial) failed() []string {
	var out []string
	for _, c := range t.checks {
		if !c.OK {
			out = append(out, c.Name)
		}
	}
	return out
}

// Each check of the demonstration can fail: one that could not would prove nothing.
func TestTryNoticesEachLoss(t *testing.T) {
	t.Parallel()
	tests := []struct {
		check string // a part of the name of the only one that must fail
		spoil func(killed, resumed *childRun, before, after *onDisk)
	}{
		{"", func(_, _ *childRun, _, _ *onDisk) {}},
		{"all that was shown had been saved", func(killed, _ *childRun, _, _ *onDisk) { killed.seq = 3 }},
		{"every saved step is still there", func(_, _ *childRun, _, after *onDisk) { after.Commits[1] = "2, changed" }},
		{"every saved step is still there", func(_, _ *childRun, _, after *onDisk) { after.Commits = after.Commits[:2] }},
		{"every message for the model", func(_, _ *childRun, _, after *onDisk) { after.API = after.API[:1] }},
		{"every message for the model", func(_, _ *childRun, _, after *onDisk) { after.API[0] = "another" }},
		{"ran once, not twice", func(_, _ *childRun, _, after *onDisk) { after.diary = 2 }},
		{"ran once, not twice", func(_, _ *childRun, before, after *onDisk) { before.diary, after.diary = 0, 0 }},
		{"the file written before the kill", func(_, _ *childRun, _, after *onDisk) { after.note = "Written" }},
		{"learned, once", func(_, _ *childRun, before, _ *onDisk) { before.Calls["c2"] = "not started" }},
		{"learned, once", func(_, _ *childRun, _, after *onDisk) { after.Calls["c2"] = "ok" }},
		{"learned, once", func(_, _ *childRun, _, after *onDisk) { delete(after.Results, "c2") }},
		{"every tool result is there exactly once", func(_, _ *childRun, _, after *onDisk) { after.Results["c1"] = 2 }},
		{"continued to its end", func(_, _ *childRun, _, after *onDisk) { after.Status = "interrupted" }},
		{"continued to its end", func(_, resumed *childRun, _, _ *onDisk) { resumed.code = 1 }},
		{"Roo's ui_messages.json", func(_, _ *childRun, _, after *onDisk) { spoil(after.Folder, "ui_messages.json") }},
		{"Roo's api_conversation_history.json", func(_, _ *childRun, _, after *onDisk) { spoil(after.Folder, "api_conversation_history.json") }},
		{"Roo's history_item.json", func(_, _ *childRun, _, after *onDisk) {
			_ = os.Remove(filepath.Join(after.Folder, "history_item.json"))
		}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d %s", i, tt.check), func(t *testing.T) {
			t.Parallel()
			tr, killed, resumed, before, after := survived(t)
			after.Calls, after.Results = maps.Clone(after.Calls), maps.Clone(after.Results)
			tt.spoil(&killed, &resumed, &before, &after)
			tr.judge(killed, resumed, before, after)
			failed := tr.failed()
			switch {
			case tt.check == "" && len(failed) > 0:
				t.Errorf("nothing was lost, and it says: %q", failed)
			case tt.check != "" && !slices.ContainsFunc(failed, func(name string) bool { return strings.Contains(name, tt.check) }):
				t.Errorf("it went unnoticed; these failed: %q", failed)
			case len(failed) > 1:
				t.Errorf("one loss, and it says: %q", failed)
			}
		})
	}
}

func spoil(dir, name string) {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(`[{"ts":1`), 0o600); err != nil {
		panic(err)
	}
}

// try says what did not hold, on stdout, and fails.
func TestTryFailsWhenACheckDoes(t *testing.T) {
	t.Parallel()
	for _, json := range []bool{false, true} {
		a, out, _ := clitest.New(t)
		a.Flags.JSON = json
		tr := &trial{a: a}
		tr.check(true, "the first", "%d of %d", 1, 1)
		tr.check(false, "the second", "lost \x1b[2J")
		err := tr.verdict()
		if f := failure.Of(err); f.Exit != failure.ExitFailed || !strings.Contains(f.Why, "1 of 2 checks did not hold") || !strings.Contains(f.Try, "--keep") {
			t.Errorf("json %v: %+v", json, f)
		}
		want := "  ✓ the first (1 of 1)\n  ✗ the second (lost)\n"
		if json {
			want = `{"ok":false,"checks":[{"name":"the first","ok":true,"detail":"1 of 1"},{"name":"the second","ok":false,"detail":"lost \u001b[2J"}]}` + "\n"
		}
		if got := out.String(); got != want {
			t.Errorf("json %v: stdout %q, want %q", json, got, want)
		}
	}
}
