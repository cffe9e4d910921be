package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// knowing makes an environment in which the model has seen files as name, content
// pairs; "-" for one that it knows to be gone.
func knowing(env tool.Env, kept bool, files ...string) tool.Env {
	seen := map[string]tool.Seen{}
	for i := 0; i < len(files); i += 2 {
		s := tool.Seen{}
		if files[i+1] != "-" {
			s.Hash = workspace.HashOf([]byte(files[i+1]))
			if kept {
				s.Data = []byte(files[i+1])
			}
		}
		seen[files[i]] = s
	}
	env.Seen = func(path string) (tool.Seen, bool) { s, ok := seen[path]; return s, ok }
	return env
}

func block1(old, fresh string) string {
	return "<<<<<<< SEARCH\n" + old + "\n=======\n" + fresh + "\n>>>>>>> REPLACE"
}

// A tool that would take away all of a file refuses, without asking anybody, when that
// is not the file that the model saw; it tells what is different as far as it is small.
func TestAWholeFileIsReplacedOnlyAsItWasSeen(t *testing.T) {
	big := strings.Repeat("many words\n", 2000)
	write := func(path, text string) (tool.Tool, json.RawMessage) {
		return WriteToFile(), call("path", path, "content", text)
	}
	remove := func(path string) (tool.Tool, json.RawMessage) {
		return ApplyPatch(), call("patch", "*** Begin Patch\n*** Delete File: "+path+"\n*** End Patch")
	}
	for name, tt := range map[string]struct {
		now, saw string
		kept     bool
		path     string
		remove   bool
		fine     bool
		tells    string
		shown    bool
	}{
		"as seen":                  {now: "a\n", saw: "a\n", kept: true, fine: true},
		"as seen, removed":         {now: "a\n", saw: "a\n", kept: true, remove: true, fine: true},
		"never seen":               {now: "a\n", fine: true},
		"changed":                  {now: "a\nb\n", saw: "a\n", kept: true, tells: " a\n+b\n", shown: true},
		"changed, removed":         {now: "a\nb\n", saw: "a\n", kept: true, remove: true, tells: " a\n+b\n", shown: true},
		"changed, not kept":        {now: "a\nb\n", saw: "a\n", tells: "It is now:\n1 | a\n2 | b\n", shown: true},
		"changed, large":           {now: big, saw: "a\n", kept: true, tells: "Read it"},
		"changed, large, not kept": {now: big, saw: "a\n", tells: "Read it"},
		"a little of much":         {now: big + "x\n", saw: big, kept: true, tells: "+x\n", shown: true},
		"changed, no text":         {now: "a\x00b", saw: "a", kept: true, tells: "Read it"},
		"protected":                {now: "new\n", saw: "old\n", kept: true, path: ".roo/rules.md", tells: "Read it"},
		"made again by another":    {now: "a\n", saw: "-", tells: "was created again", shown: true},
		"to what it is already":    {now: "mine\n", saw: "a\n", kept: true, fine: true},
		"emptied":                  {now: "", saw: "a\n", kept: true, tells: "-a\n", shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := "f"
			if tt.path != "" {
				path = tt.path
			}
			env, root := sandbox(t, path, tt.now)
			if tt.saw != "" {
				env = knowing(env, tt.kept, path, tt.saw)
			}
			tl, in := write(path, "mine\n")
			if tt.remove {
				tl, in = remove(path)
			}
			_, err := tl.Plan(context.Background(), env, in)
			var stale *tool.StaleError
			if errors.As(err, &stale) == tt.fine {
				t.Fatalf("planned with %v", err)
			}
			if tt.fine {
				return
			}
			if !strings.Contains(stale.Reason, tt.tells) || stale.Shown != tt.shown || len(stale.Reason) > 2*maxChangeText {
				t.Errorf("shown %v: %s", stale.Shown, stale.Reason)
			}
			if stale.Now.Path != path || stale.Now.Hash != workspace.HashOf([]byte(tt.now)) {
				t.Errorf("recorded as %+v", stale.Now)
			}
			if got := fixture.ReadFile(t, filepath.Join(root, path)); got != tt.now {
				t.Errorf("it holds %q", got)
			}
		})
	}
}

// A file that somebody deleted since the model saw it is made anew, and that is said; of one
// that it never saw, or knows to be gone, there is nothing to say.
func TestAFileThatWasDeletedIsMadeAnew(t *testing.T) {
	for saw, told := range map[string]bool{"": false, "-": false, "a\n": true} {
		env, root := sandbox(t, "other", "x\n")
		if saw != "" {
			env = knowing(env, true, "f", saw)
		}
		p, err := WriteToFile().Plan(context.Background(), env, call("path", "f", "content", "mine\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(context.Background(), nil)
		if err != nil || fixture.ReadFile(t, filepath.Join(root, "f")) != "mine\n" {
			t.Fatalf("saw %q: %+v %v", saw, r, err)
		}
		if got := strings.Contains(r.Text, "<notice>f had been deleted since you last saw it. It was created again.</notice>"); got != told {
			t.Errorf("saw %q: %s", saw, r.Text)
		}
	}
}

// A tool that changes some lines makes its change where they are, and says what else is
// new; what somebody else did is recorded before it.
func TestLinesAreChangedInWhatIsThere(t *testing.T) {
	for name, tt := range map[string]struct {
		tl tool.Tool
		in json.RawMessage
	}{
		"apply_diff":     {ApplyDiff(), call("path", "f", "diff", block1("two", "2"))},
		"apply_patch":    {ApplyPatch(), call("patch", "*** Begin Patch\n*** Update File: f\n@@\n-two\n+2\n*** End Patch")},
		"edit":           {Edit(), call("file_path", "f", "old_string", "two", "new_string", "2")},
		"search_replace": {SearchReplace(), call("file_path", "f", "old_string", "two", "new_string", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "f", "ONE\ntwo\n")
			_, res := run(t, knowing(env, true, "f", "one\ntwo\n"), tt.tl, tt.in)
			if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != "ONE\n2\n" {
				t.Errorf("it holds %q", got)
			}
			if !strings.Contains(res.Text, "f had changed since you last saw it. Your change was made in what was there. What changed:\n") || !strings.Contains(res.Text, "\n-one\n+ONE\n two\n") {
				t.Error(res.Text)
			}
			var sources []string
			for _, f := range res.Files {
				sources = append(sources, f.Source)
			}
			if strings.Join(sources, " ") != otherSource+" "+editedSource || res.Files[0].Hash != workspace.HashOf([]byte("ONE\ntwo\n")) {
				t.Errorf("recorded as %+v", res.Files)
			}
			env, _ = sandbox(t, "f", "one\ntwo\n")
			if _, res = run(t, knowing(env, true, "f", "one\ntwo\n"), tt.tl, tt.in); strings.Contains(res.Text, "had changed") || len(res.Files) != 1 {
				t.Errorf("of a file as it was seen: %s", res.Text)
			}
		})
	}
}

// A difference is whole or not told at all.
func TestDifference(t *testing.T) {
	for name, tt := range map[string]struct {
		old, now string
		limit    int
		whole    bool
	}{
		"small": {"a\n", "b\n", 100, true}, "at the limit": {"a\n", "b\n", len("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"), true},
		"over it": {"a\n", "b\n", len("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n") - 1, false}, "none": {"a", "a", 100, false},
		"no text": {"a\x00", "b", 100, false}, "no text now": {"a", "b\x00", 100, false},
		"another encoding": {"caf\xe9\n", "café\n", 100, false},
	} {
		text, whole := Difference("f", []byte(tt.old), []byte(tt.now), tt.limit)
		if whole != tt.whole || whole != (text != "") {
			t.Errorf("%s: got %v %q, want whole = tt.whole and whole = (text != \"\")", name, whole, text)
		}
	}
}
