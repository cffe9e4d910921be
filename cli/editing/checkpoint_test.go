package editing

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// hostile is a name as a model may make it.
const hostile = "a\x1b[2J\nb\u202ec.txt"

// Names of files, titles and reasons come from models and disks: nothing of them reaches
// a terminal raw, and a name stays on its line.
func TestCheckpointTextsAreSafe(t *testing.T) {
	t.Parallel()
	c := api.Checkpoint{Number: 1, Reason: hostile, Title: hostile, Time: "2026-01-02T03:04:05.000Z"}
	item := api.RestoreItem{Path: hostile, Change: api.FileChanged, Why: hostile}
	r := api.RestoreResult{ID: "x", To: c, Files: []api.RestoreItem{item}, Conflicts: []api.RestoreItem{item}, Lost: []api.RestoreItem{item}}
	diff := api.FileDiff{Path: hostile, Change: api.FileAdded, Added: 1, Patch: "diff --git " + hostile + "\n+" + hostile + "\n"}
	unkept := api.FileDiff{Path: hostile, Change: api.FileChanged, Why: hostile}
	for name, show := range map[string]func(a *app.App){
		"list": func(a *app.App) {
			(&commands{App: a}).printCheckpoints(api.Checkpoints{ID: "x", Checkpoints: []api.Checkpoint{c}})
		},
		"patch": func(a *app.App) { fixture.NoError(t, (&commands{App: a}).printPatch([]api.FileDiff{diff, unkept})) },
		"stat":  func(a *app.App) { fixture.NoError(t, (&commands{App: a}).printStat([]api.FileDiff{diff, unkept})) },
		"plan":  func(a *app.App) { (&commands{App: a}).tellRestore(r) },
		"undo":  func(a *app.App) { (&commands{App: a}).printKept(&r) },
		"why":   func(a *app.App) { a.Tell(failure.Of(restoreFailure(r))) },
		"which": func(a *app.App) {
			a.Tell(failure.Of(&client.Problem{Status: 404, Code: "checkpoint_not_found", Title: hostile, Detail: hostile, Suggestions: []string{hostile}}))
		},
	} {
		a, out, errs := clitest.New(t)
		a.OutTTY = name == "patch" // a program gets it as it is
		show(a)
		text := out.String() + errs.String()
		if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "c.txt") {
			t.Errorf(`%s: got %q, want not strings.ContainsAny(text, "\x1b\u202e") and strings.Contains(text, "c.txt")`,
				name, text)
		}
		if name != "patch" && strings.Contains(text, "\nb") {
			t.Errorf("%s: a name breaks its line: %q", name, text)
		}
	}
}

func TestRestoreExitCodes(t *testing.T) {
	t.Parallel()
	one := []api.RestoreItem{{Path: "a"}}
	for _, tt := range []struct {
		name string
		r    api.RestoreResult
		want int
	}{
		{"all is back", api.RestoreResult{Files: one, Outcome: "done"}, failure.ExitDone},
		{"nothing was to do", api.RestoreResult{Outcome: "nothing"}, failure.ExitDone},
		{"some are kept", api.RestoreResult{Files: one, Conflicts: one, Outcome: "done"}, failure.ExitDone},
		{"only conflicts, and keep was asked for", api.RestoreResult{Conflicts: one, Outcome: "nothing"}, failure.ExitDone},
		{"one is lost", api.RestoreResult{Files: one, Lost: one, Outcome: "done"}, failure.ExitDamaged},
		{"lost and conflicts", api.RestoreResult{Conflicts: one, Lost: one, Outcome: "nothing"}, failure.ExitDamaged},
		{"a dry run", api.RestoreResult{Conflicts: one, Lost: one, DryRun: true}, failure.ExitDone},
	} {
		got := failure.ExitDone
		if err := restoreFailure(tt.r); err != nil {
			got = failure.Of(err).Exit
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ added, removed, most, plus, minus int }{
		{3, 2, 5, 3, 2},
		{0, 0, 5, 0, 0},
		{40, 0, 40, 40, 0},
		{100, 100, 200, 20, 20},
		{1, 0, 100_000, 1, 0},
		{99_999, 1, 100_000, 39, 1},
	} {
		if plus, minus := bar(tt.added, tt.removed, tt.most); plus != tt.plus || minus != tt.minus {
			t.Errorf("got %+v: %d, %d, want plus = tt.plus and minus = tt.minus", tt, plus, minus)
		}
	}
}

func TestRestoreIsSaidInWords(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	r := api.RestoreResult{
		ID: "x", To: api.Checkpoint{}, Bytes: 1500,
		Files:     []api.RestoreItem{{Path: "a", Change: "changed", How: "merge", Patch: "-x\r\n+y\r\n"}, {Path: "b", Change: "deleted", How: "restore"}},
		Conflicts: []api.RestoreItem{{Path: "c", Change: "changed"}}, Lost: []api.RestoreItem{{Path: "d", Why: "too large"}},
	}
	got := strings.Join((&commands{App: a}).restoreLines(r, display.Style{}), "\n")
	want := "to restore x  c0  the files before the task changed anything\n" +
		"  changed   a  (merged: the changes of others stay)\n    -x\n    +y\n" +
		"  deleted   b\n" +
		"  conflict  c  (kept: others changed it since)\n" +
		"  lost      d  (kept: too large)\n" +
		"  2 files, 1.5 KB; 1 conflict kept (--on-conflict merge|overwrite); 1 lost"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestDeedsThatPutFilesBack(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	to := 3
	for want, d := range map[string]api.Action{
		"a restore of 2 files to c3":                           {Kind: api.ActionRestore, Files: 2, Checkpoint: &to},
		"a rewind of 4 messages, 2 for the model, with 1 file": {Kind: "rewind", Files: 1, Checkpoint: &to, Gone: &api.MessageCounts{UI: 4, API: 2}},
	} {
		if got := (&commands{App: a}).actionText(d, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// On a terminal, a file whose lines end with a carriage return and a newline has no blank lines between them. A program
// gets each byte, because it may apply the patch.
func TestAPatchKeepsItsLines(t *testing.T) {
	t.Parallel()
	const shown = "@@ -1,2 +1 @@\n one\n-two\n"
	patch := strings.ReplaceAll(shown, "\n", "\r\n")
	for tty, want := range map[bool]string{true: shown, false: patch} {
		a, out, _ := clitest.New(t)
		a.OutTTY = tty
		err := (&commands{App: a}).printPatch([]api.FileDiff{{Path: "a", Change: api.FileChanged, Patch: patch}})
		if err != nil || out.String() != want {
			t.Errorf("on a terminal %v: got %q, %v, want %q", tty, out.String(), err, want)
		}
	}
}

func TestModesAndKindsInDiffs(t *testing.T) {
	t.Parallel()
	file := func(mode uint32) api.FileVersion { return api.FileVersion{Kind: api.KindFile, Mode: mode} }
	for want, d := range map[string]api.FileDiff{
		"mode 755, was 644":             {From: file(0o644), To: file(0o755)},
		"a link, was a file":            {From: file(0o644), To: api.FileVersion{Kind: api.KindLink}},
		"not compared by lines: binary": {From: file(0o644), To: file(0o644), Why: "binary"},
		"":                              {From: file(0o644), To: api.FileVersion{Kind: api.KindGone}},
		"mode 600, was 644; not compared by lines: too large": {From: file(0o644), To: file(0o600), Why: "too large"},
	} {
		if got := diffNote(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
