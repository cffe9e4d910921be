//go:build unix

package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

func patchCall(sections ...string) json.RawMessage { return call("patch", patchOf(sections...)) }

const del, add = "*** Delete File: ", "*** Add File: "

func TestAPatchOfManyFiles(t *testing.T) {
	env, root := sandbox(t, "a.go", "one\ntwo\n", "old.go", "x\n", "run.sh", "#!\necho 1\n", "same", "s\n")
	script := filepath.Join(root, "run.sh")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	in := patchCall(update("a.go", "@@", "-two", "+2"), add+"new/b.go\n+package b", del+"old.go",
		"*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-echo 1\n+echo 2", update("same", " s"))
	ask, res := run(t, env, ApplyPatch(), in)
	want := map[string]string{"a.go": "one\n2\n", "new/b.go": "package b\n", "bin/run.sh": "#!\necho 2\n", "same": "s\n"}
	if d := cmp.Diff(want, fixture.Files(t, root)); d != "" {
		t.Error(d)
	}
	if info, _ := os.Stat(filepath.Join(root, "bin/run.sh")); info.Mode().Perm() != 0o755 {
		t.Errorf("moving changed the mode to %v", info.Mode())
	}
	if d := cmp.Diff([]string{"a.go", "new/b.go", "old.go", "run.sh", "bin/run.sh", "same"}, ask.Paths); d != "" {
		t.Error(d)
	}
	wantDiff := "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" +
		"--- /dev/null\n+++ b/new/b.go\n@@ -0,0 +1 @@\n+package b\n" +
		"--- a/old.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
		"--- a/run.sh\n+++ b/bin/run.sh\n@@ -1,2 +1,2 @@\n #!\n-echo 1\n+echo 2\n"
	if d := cmp.Diff(wantDiff, ask.Diff); d != "" {
		t.Error(d)
	}
	wantText := `{"files":[{"path":"a.go","operation":"modified"},{"path":"new/b.go","operation":"created"},{"path":"old.go","operation":"deleted"},{"path":"bin/run.sh","operation":"moved","from":"run.sh"}],`
	if !strings.HasPrefix(res.Text, wantText) || res.IsError {
		t.Error(res.Text)
	}
	// What the model knows now: a file that is gone has no content.
	hashes := map[string]string{}
	for _, f := range res.Files {
		hashes[f.Path] = f.Hash
	}
	wantHashes := map[string]string{"old.go": "", "run.sh": ""}
	for _, name := range []string{"a.go", "new/b.go", "bin/run.sh"} {
		wantHashes[name] = workspace.HashOf([]byte(want[name]))
	}
	if d := cmp.Diff(wantHashes, hashes); d != "" {
		t.Error(d)
	}
}

// The row is that of the file for a patch of one, and Roo's row of several diffs else.
func TestRowsOfAPatch(t *testing.T) {
	env, _ := sandbox(t, "a", "1\n", "b", "1\n")
	for _, tt := range []struct {
		in   json.RawMessage
		kind string
		keys string
	}{
		{patchCall(update("a", "-1", "+2")), "appliedDiff", "tool path diff isOutsideWorkspace content isProtected diffStats originalContent"},
		{patchCall(add + "n\n+x"), "newFileCreated", "tool path diff isOutsideWorkspace content isProtected diffStats"},
		{patchCall(del + "a"), "appliedDiff", "tool path diff isOutsideWorkspace content isProtected diffStats"},
		{patchCall("*** Update File: a\n*** Move to: m\n 1"), "appliedDiff", "tool path diff isOutsideWorkspace content isProtected"},
		{patchCall(update("a", "-1", "+2"), del+"b"), "appliedDiff", "tool path diff isOutsideWorkspace content isProtected diffStats batchDiffs"},
	} {
		ask := plan(t, env, ApplyPatch(), tt.in).Ask()
		if got := strings.Join(keys(ask.Text), " "); got != tt.keys || str([]byte(ask.Text), "tool") != tt.kind {
			t.Errorf("%s: got %s, want got = tt.keys and str([]byte(ask.Text), \"tool\") = tt.kind", tt.in, ask.Text)
		}
		batch, _ := esjson.Get([]byte(ask.Text), "batchDiffs")
		for e := range esjson.Array(batch) {
			if str(e, "path") == "" || !strings.HasPrefix(str(e, "content"), "@@") {
				t.Errorf("an entry is %s", e)
			}
		}
	}
}

// A section sees what those before it did, and what comes to nothing is not done.
func TestSectionsFollowEachOther(t *testing.T) {
	for name, tt := range map[string]struct {
		sections []string
		want     map[string]string
		touched  int
	}{
		"changed twice":         {[]string{update("a", "-1", "+2"), update("a", "-2", "+3")}, map[string]string{"a": "3\n", "b": "1\n"}, 1},
		"made and changed":      {[]string{add + "n\n+x", update("n", "-x", "+y")}, map[string]string{"a": "1\n", "b": "1\n", "n": "y\n"}, 1},
		"deleted and made":      {[]string{del + "a", add + "a\n+x"}, map[string]string{"a": "x\n", "b": "1\n"}, 1},
		"made and deleted":      {[]string{add + "n\n+x", del + "n", del + "b"}, map[string]string{"a": "1\n"}, 1},
		"moved twice":           {[]string{"*** Update File: a\n*** Move to: m\n 1", "*** Update File: m\n*** Move to: n\n-1\n+2"}, map[string]string{"b": "1\n", "n": "2\n"}, 2},
		"moved onto a deleted":  {[]string{del + "b", "*** Update File: a\n*** Move to: b\n-1\n+2"}, map[string]string{"b": "2\n"}, 2},
		"moved away and made":   {[]string{"*** Update File: a\n*** Move to: m\n 1", add + "a\n+new"}, map[string]string{"a": "new\n", "b": "1\n", "m": "1\n"}, 2},
		"moved to where it is":  {[]string{"*** Update File: a\n*** Move to: ./a\n-1\n+2"}, map[string]string{"a": "2\n", "b": "1\n"}, 1},
		"moved and taken away":  {[]string{"*** Update File: a\n*** Move to: m\n 1", del + "m"}, map[string]string{"b": "1\n"}, 1},
		"two places change one": {[]string{"*** Update File: a\n*** Move to: m\n 1", "*** Update File: b\n*** Move to: a\n 1"}, map[string]string{"a": "1\n", "m": "1\n"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "a", "1\n", "b", "1\n")
			ask, res := run(t, env, ApplyPatch(), patchCall(tt.sections...))
			if d := cmp.Diff(tt.want, fixture.Files(t, root)); d != "" || res.IsError {
				t.Error(d, res.Text)
			}
			if len(res.Files) != tt.touched || len(ask.Before) != tt.touched {
				t.Errorf("%d files were touched, %d planned, want %d: %s", len(res.Files), len(ask.Before), tt.touched, res.Text)
			}
		})
	}
}

// One section that cannot be made keeps all of a patch from being made, and the model
// is told which and why.
func TestAPatchIsRefusedWhole(t *testing.T) {
	env, root := sandbox(t, "a", "1\n", "b", "1\n", "odd", "\xff\xfea\x00\n", "wide", "a\x00\n\x00", "mixed", "caf\xe9 é\n", "d/f", "")
	if err := os.Symlink("b", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	before := fixture.Files(t, root)
	good := update("a", "-1", "+2")
	for bad, want := range map[string]string{
		update("none", "-1", "+2"): "none does not exist",
		update("b", "-9", "+2"):    "not found in b",
		add + "b\n+x":              "b exists already",
		add + "d\n+x":              "d is not a file",
		add + "b/x\n+x":            "b/x cannot be read",
		del + "none":               "none does not exist",
		del + "d":                  "d is not a file",
		del + "link":               "link is a link",
		"*** Update File: link\n*** Move to: x\n 1": "link is a link",
		"*** Update File: b\n*** Move to: a\n 1":    "a exists already",
		update("odd", "+x"):                         "odd is not text in UTF-8",
		update("wide", "+x"):                        "wide is not text in UTF-8",
		update("mixed", "+x"):                       "mixed is not text in UTF-8",
		del:                                         "does not begin a section",
		add + "x\x00y\n+x":                          "x",
	} {
		_, err := ApplyPatch().Plan(context.Background(), env, patchCall(good, bad))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	for _, in := range []json.RawMessage{patchCall(update("a", " 1")), call("patch", "*** Begin Patch\n*** End Patch"), call("patch", strings.Replace(string(patchOf(strings.Repeat(del+"a\n", 101))), "\n\n", "\n", 1)), call("path", "a")} {
		if _, err := ApplyPatch().Plan(context.Background(), env, in); err == nil {
			t.Errorf("%.80s was taken", in)
		}
	}
	if d := cmp.Diff(before, fixture.Files(t, root)); d != "" {
		t.Error(d)
	}
}

// What one of the files is, all of the call is: a patch cannot carry a write to a
// protected, hidden or outside file past who decides.
func TestAPatchIsAsWildAsItsWildestFile(t *testing.T) {
	env, root := sandbox(t, "a", "1\n", ".rooignore", "secret\n", "secret", "s\n", "AGENTS.md", "x\n")
	outside := filepath.Join(root, "..", "out")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(root, "esc")); err != nil {
		t.Fatal(err)
	}
	move := func(to string) string { return "*** Update File: a\n*** Move to: " + to + "\n 1" }
	for second, want := range map[string]tool.Ask{
		add + "b\n+x":              {},
		add + "AGENT.md\n+x":       {Protected: true},
		del + "AGENTS.md":          {Protected: true},
		move(".roo/rules/x"):       {Protected: true},
		add + outside + "\n+x":     {Outside: true},
		move("../moved"):           {Outside: true},
		add + "esc/new\n+x":        {Outside: true, LinkedOutside: true},
		del + "secret":             {Ignored: true},
		move("secret"):             {Ignored: true},
		add + "b/../secret\n+x":    {Ignored: true},
		del + ".rooignore":         {Ignored: true, Protected: true},
		add + ".vscode/x.json\n+x": {Protected: true},
	} {
		ask := plan(t, env, ApplyPatch(), patchCall(update("a", " 1"), second)).Ask()
		if ask.Outside != want.Outside || ask.LinkedOutside != want.LinkedOutside || ask.Protected != want.Protected || ask.Ignored != want.Ignored || ask.Tool != "apply_patch" || ask.Kind != "tool" {
			t.Errorf("%q: %+v", second, ask)
		}
		for key, want := range map[string]bool{"isProtected": want.Protected, "isOutsideWorkspace": want.Outside} {
			if got, _ := esjson.Get([]byte(ask.Text), key); !ask.Ignored && string(got) != map[bool]string{true: "true", false: "false"}[want] {
				t.Errorf("%q: %s is %s", second, key, got)
			}
		}
	}
}

// Between plan and run somebody changes one of the files: none is written.
func TestAPatchForOtherContentDoesNothing(t *testing.T) {
	for name, meddle := range map[string]func(root string) error{
		"changed": func(root string) error { return os.WriteFile(filepath.Join(root, "b"), []byte("theirs\n"), 0o600) },
		"removed": func(root string) error { return os.Remove(filepath.Join(root, "b")) },
		"made":    func(root string) error { return os.WriteFile(filepath.Join(root, "n"), []byte("theirs\n"), 0o600) },
		"hidden":  func(root string) error { return os.WriteFile(filepath.Join(root, ".rooignore"), []byte("b\n"), 0o600) },
		"locked":  func(root string) error { return os.Chmod(filepath.Join(root, "b"), 0o400) },
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "a", "1\n", "b", "1\n")
			p := plan(t, env, ApplyPatch(), patchCall(update("a", "-1", "+2"), add+"n\n+x", del+"b"))
			if err := meddle(root); err != nil {
				t.Fatal(err)
			}
			before := fixture.Files(t, root)
			res, err := p.Run(context.Background(), nil)
			if err != nil || !res.IsError || len(res.Files) > 0 {
				t.Errorf("got %v %+v, want no error and res.IsError and len(res.Files) <= 0", err, res)
			}
			if d := cmp.Diff(before, fixture.Files(t, root)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A call that another program left has no hashes: each section is looked at.
func TestInspectionOfAForeignPatch(t *testing.T) {
	in := patchCall(update("a", "-1", "+2"), add+"n\n+x", del+"b", "*** Update File: c\n*** Move to: m\n-1\n+2")
	inspect := func(env tool.Env) (tool.Finding, error) {
		return ApplyPatch().(tool.Inspector).Inspect(context.Background(), env, in, nil)
	}
	env, root := sandbox(t, "a", "1\n", "b", "1\n", "c", "1\n")
	if got, err := inspect(env); got != tool.NotDone || err != nil {
		t.Errorf("not run: %s, %v", got, err)
	}
	run(t, env, ApplyPatch(), in)
	if got, err := inspect(env); got != tool.Done || err != nil {
		t.Errorf("run: %s, %v", got, err)
	}
	fixture.WriteFile(t, filepath.Join(root, "b"), "1\n")
	fixture.WriteFile(t, filepath.Join(root, "n"), "theirs")
	got, err := inspect(env)
	if got != tool.Unclear || err == nil || err.Error() != "Changed: a, c. Not changed: b. Not clear: n." {
		t.Errorf("a part: %s, %v", got, err)
	}
}

// Rules are held against the name that was given and the place it leads to.
func TestAPatchNamesThePlacesBehindLinks(t *testing.T) {
	env, root := sandbox(t, "real/f", "1\n")
	if err := os.Symlink("real", filepath.Join(root, "alias")); err != nil {
		t.Fatal(err)
	}
	ask := plan(t, env, ApplyPatch(), patchCall(update("alias/f", "-1", "+2"))).Ask()
	if d := cmp.Diff([]string{"alias/f", "real/f"}, ask.Paths); d != "" || ask.Title != "apply_patch alias/f" {
		t.Error(ask.Title, d)
	}
}

// Of a file that is too large for a patch nothing is known but that it is another one: it
// is not told to be empty, and not taken away.
func TestALargeFileIsTakenAwayOnlyAsItWasSeen(t *testing.T) {
	env, root := sandbox(t, "f", "")
	if err := os.Truncate(filepath.Join(root, "f"), MaxEdit+1); err != nil {
		t.Skip(err)
	}
	_, err := ApplyPatch().Plan(t.Context(), knowing(env, true, "f", "a\n"), patchCall(del+"f"))
	var stale *tool.StaleError
	if !errors.As(err, &stale) || stale.Shown || !strings.Contains(stale.Reason, "Read it") {
		t.Errorf("got %v, want errors.As(err, &stale) and not stale.Shown and strings.Contains(stale.Reason, \"Read it\")",
			err)
	}
	ask, res := run(t, env, ApplyPatch(), patchCall(del+"f"))
	if res.IsError || !strings.Contains(ask.Diff, "too large for a diff: 33554433 bytes before") {
		t.Errorf("got %q, %s, want not res.IsError and strings.Contains(ask.Diff, \"too large for a diff: 33554433 bytes before\")",
			ask.Diff, res.Text)
	}
}

// A file that a patch names and leaves as it is was not changed in what was there: there is
// nothing to say of it, whoever changed it before.
func TestAPatchTellsOnlyOfWhatItChanges(t *testing.T) {
	env, _ := sandbox(t, "a", "1\n", "b", "1\n", "c", "1\n")
	_, res := run(t, knowing(env, true, "a", "0\n", "b", "0\n", "c", "1\n"), ApplyPatch(), patchCall(update("a", "-1", "+1"), update("b", "-1", "+2"), update("c", "-1", "+2")))
	for name, told := range map[string]bool{"a": false, "b": true, "c": false} {
		if got := strings.Contains(res.Text, "<notice>"+name+" had changed"); got != told {
			t.Errorf("%s: got %s, want got = told", name, res.Text)
		}
	}
	var files []string
	for _, f := range res.Files {
		files = append(files, f.Path+" "+f.Source)
	}
	if got, want := strings.Join(files, ", "), "b "+otherSource+", b "+editedSource+", c "+editedSource; got != want {
		t.Errorf("recorded as %s, not %s", got, want)
	}
}

// patchOf writes a patch around sections.
func patchOf(sections ...string) string {
	return "*** Begin Patch\n" + strings.Join(sections, "\n") + "\n*** End Patch"
}

func update(path string, lines ...string) string {
	return "*** Update File: " + path + "\n" + strings.Join(lines, "\n")
}
