//go:build unix

package filetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// Environment of a child that runs one call and dies at a failpoint.
const (
	childTool  = "FILETOOL_TEST_TOOL"
	childInput = "FILETOOL_TEST_INPUT"
	childRoot  = "FILETOOL_TEST_ROOT"
)

func TestMain(m *testing.M) {
	name := os.Getenv(childTool)
	if name == "" {
		os.Exit(m.Run())
	}
	ws, err := workspace.Open(os.Getenv(childRoot))
	if err == nil {
		for _, tl := range All() {
			if tl.Spec().Name != name {
				continue
			}
			var p tool.Plan
			if p, err = tl.Plan(context.Background(), tool.Env{Workspace: ws}, json.RawMessage(os.Getenv(childInput))); err == nil {
				_, err = p.Run(context.Background(), nil)
			}
		}
	}
	fmt.Println("not killed:", err)
	os.Exit(1)
}

// A call is killed at each point of its write; what is found afterwards is the
// truth, and the folder holds only the user's files.
func TestWhatAKilledCallIsFoundToHaveDone(t *testing.T) {
	old := "first\nsecond\nthird\n"
	diff := diffBlock(2, "second", "2nd\nand a half")
	for _, tt := range []struct {
		tl    tool.Tool
		in    json.RawMessage
		point string
		want  tool.Finding
		text  string
	}{
		{WriteToFile(), call("path", "f", "content", "new\n"), "tool.write.filled", tool.NotDone, old},
		{WriteToFile(), call("path", "f", "content", "new\n"), "tool.write.before", tool.NotDone, old},
		{WriteToFile(), call("path", "f", "content", "new\n"), "tool.write.after", tool.Done, "new\n"},
		{WriteToFile(), call("path", "d/g", "content", "new\n"), "tool.write.before", tool.NotDone, ""},
		{WriteToFile(), call("path", "d/g", "content", "new\n"), "tool.write.linked", tool.Done, "new\n"},
		{WriteToFile(), call("path", "d/g", "content", "new\n"), "tool.write.after", tool.Done, "new\n"},
		{ApplyDiff(), call("path", "f", "diff", diff), "tool.write.filled", tool.NotDone, old},
		{ApplyDiff(), call("path", "f", "diff", diff), "tool.write.before", tool.NotDone, old},
		{ApplyDiff(), call("path", "f", "diff", diff), "tool.write.after", tool.Done, "first\n2nd\nand a half\nthird\n"},
		{Edit(), call("path", "f", "old_string", "second", "new_string", "2nd"), "tool.write.before", tool.NotDone, old},
		{Edit(), call("path", "f", "old_string", "second", "new_string", "second, and more"), "tool.write.after", tool.Done, "first\nsecond, and more\nthird\n"},
		{EditFile(), call("path", "d/g", "old_string", "", "new_string", "new\n"), "tool.write.before", tool.NotDone, ""},
		{EditFile(), call("path", "d/g", "old_string", "", "new_string", "new\n"), "tool.write.linked", tool.Done, "new\n"},
	} {
		t.Run(tt.tl.Spec().Name+" "+str(tt.in, "path")+" at "+tt.point, func(t *testing.T) {
			env, root := sandbox(t, "f", old)
			before := plan(t, env, tt.tl, tt.in).Ask().Before
			kill(t, root, tt.tl, tt.in, tt.point)
			for range 2 { // looking twice finds the same
				got, err := tt.tl.(tool.Inspector).Inspect(context.Background(), env, tt.in, before)
				if err != nil || got != tt.want {
					t.Errorf("found %s, %v, want %s", got, err, tt.want)
				}
			}
			data, _ := os.ReadFile(filepath.Join(root, str(tt.in, "path")))
			if string(data) != tt.text {
				t.Errorf("the file holds %q", data)
			}
			noneLeft(t, root)
		})
	}
}

// kill runs a call in a child that dies at a failpoint.
func kill(t *testing.T, root string, tl tool.Tool, in json.RawMessage, point string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childTool+"="+tl.Spec().Name, childInput+"="+string(in), childRoot+"="+root, failpoint.Env+"="+point)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v: %s", err, out)
	}
}

func noneLeft(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".roost-") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A patch of several files is killed before, between and after its renames. What is
// found is the truth, the model is told which files are changed, each file is the old
// or the new one, and nothing else is left. What was not begun can run again.
func TestWhatAKilledPatchIsFoundToHaveDone(t *testing.T) {
	in := patchCall(update("a", "-1", "+2"), add+"d/n\n+x", del+"b", "*** Update File: c\n*** Move to: m\n-1\n+2")
	old := map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"}
	fresh := map[string]string{"a": "2\n", "d/n": "x\n", "m": "2\n"}
	order := []string{"a", "d/n", "m", "b", "c"} // files are taken away last
	for point, done := range map[string]int{
		"tool.write.filled": 0, "tool.write.filled:3": 0, "tool.write.before": 0, "tool.write.after": 1, "tool.write.linked": 2,
		"tool.write.after:2": 2, "tool.write.after:3": 3, "tool.write.after:4": 4, "tool.write.linked:2": 3, "tool.write.after:5": 5,
	} {
		t.Run(point, func(t *testing.T) {
			env, root := sandbox(t, "a", "1\n", "b", "1\n", "c", "1\n")
			before := plan(t, env, ApplyPatch(), in).Ask().Before
			kill(t, root, ApplyPatch(), in, point)
			want, finding := maps.Clone(old), tool.Unclear
			for _, name := range order[:done] {
				delete(want, name)
				if text, ok := fresh[name]; ok {
					want[name] = text
				}
			}
			switch done {
			case 0:
				finding = tool.NotDone
			case len(order):
				finding = tool.Done
			}
			for range 2 {
				got, err := ApplyPatch().(tool.Inspector).Inspect(context.Background(), env, in, before)
				if got != finding || (err != nil) != (finding == tool.Unclear) {
					t.Errorf("found %s, %v, want %s", got, err, finding)
				}
				if err != nil && !strings.HasPrefix(err.Error(), "Changed: a") {
					t.Error(err)
				}
			}
			noneLeft(t, root)
			if d := cmp.Diff(want, fixture.Files(t, root)); d != "" {
				t.Error(d)
			}
			if done == 0 {
				run(t, env, ApplyPatch(), in)
				if d := cmp.Diff(fresh, fixture.Files(t, root)); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// An inspection never calls something done that was not, nor not done what was:
// with the hash from before there is no guessing for a whole file.
func TestInspectionIsRight(t *testing.T) {
	env, root := sandbox(t)
	name := filepath.Join(root, "f")
	rapid.Check(t, func(r *rapid.T) {
		old, fresh := content().Draw(r, "old"), content().Draw(r, "new")
		fixture.WriteFile(t, name, old)
		in := call("path", "f", "content", fresh)
		p := plan(t, env, WriteToFile(), in)
		other := content().Draw(r, "other")
		state := rapid.SampledFrom([]string{"not run", "run", "run and edited", "gone"}).Draw(r, "state")
		switch state {
		case "run":
			run(t, env, WriteToFile(), in)
		case "run and edited":
			fixture.WriteFile(t, name, other)
		case "gone":
			os.Remove(name)
		}
		now, _ := os.ReadFile(name)
		got, err := WriteToFile().(tool.Inspector).Inspect(context.Background(), env, in, p.Ask().Before)
		if err != nil {
			r.Fatal(err)
		}
		want := tool.Unclear
		switch {
		case state == "gone":
		case string(now) == likeBefore(stripFence(fresh), old):
			want = tool.Done // or there was nothing to do
		case string(now) == old:
			want = tool.NotDone
		}
		if got != want {
			r.Fatalf("%s: found %s, want %s; %q, then %q, now %q", state, got, want, old, fresh, now)
		}
	})
}

func TestInspectionOfADiff(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{3,8}`), 3, 12, rapid.ID[string]).Draw(r, "lines")
		at := rapid.IntRange(0, len(lines)-1).Draw(r, "at")
		env, root := sandbox(t, "f", strings.Join(lines, "\n")+"\n")
		in := call("path", "f", "diff", diffBlock(at+1, lines[at], "X"+lines[at]+"X"))
		p := plan(t, env, ApplyDiff(), in)
		inspect := func() tool.Finding {
			var before map[string]string
			if rapid.Bool().Draw(r, "with the hash from before") {
				before = p.Ask().Before
			}
			got, err := ApplyDiff().(tool.Inspector).Inspect(context.Background(), env, in, before)
			if err != nil {
				r.Fatal(err)
			}
			return got
		}
		if got := inspect(); got != tool.NotDone {
			r.Fatalf("before it ran: %s", got)
		}
		if _, err := p.Run(context.Background(), nil); err != nil {
			r.Fatal(err)
		}
		if got := inspect(); got != tool.Done {
			r.Fatalf("after it ran: %s", got)
		}
		// Others may go on elsewhere in the file; the change is still there.
		fixture.WriteFile(t, filepath.Join(root, "f"), "MORE\n"+fixture.ReadFile(t, filepath.Join(root, "f"))+"END\n")
		if got := inspect(); got != tool.Done {
			r.Fatalf("after an edit elsewhere: %s", got)
		}
		fixture.WriteFile(t, filepath.Join(root, "f"), "all new\n")
		if got := inspect(); got == tool.Done || got == tool.NotDone {
			r.Fatalf("after a rewrite: %s", got)
		}
	})
}

// A diff whose lines carry their numbers, and one for a file that has such numbers
// itself, are told apart as when they are applied.
func TestInspectionOfNumberedLines(t *testing.T) {
	for _, text := range []string{"a\nb\nc\n", "1 | a\n2 | b\n3 | c\n"} {
		env, root := sandbox(t, "f", text)
		in := call("path", "f", "diff", diffBlock(0, "2 | b", "2 | B"))
		inspect := func(want tool.Finding) {
			t.Helper()
			if got, err := ApplyDiff().(tool.Inspector).Inspect(context.Background(), env, in, nil); got != want || err != nil {
				t.Errorf("%q: %s, %v, want %s", fixture.ReadFile(t, filepath.Join(root, "f")), got, err, want)
			}
		}
		inspect(tool.NotDone)
		run(t, env, ApplyDiff(), in)
		if got := fixture.ReadFile(t, filepath.Join(root, "f")); got != strings.ReplaceAll(text, "b", "B") {
			t.Errorf("%q became %q", text, got)
		}
		inspect(tool.Done)
	}
}

func TestInspectionThatCannotLook(t *testing.T) {
	env, root := sandbox(t, "dir/x", "", "f", "x\n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	diff := diffBlock(0, "x", "y")
	for _, tl := range []tool.Tool{WriteToFile(), ApplyDiff()} {
		look := tl.(tool.Inspector)
		for path, wantErr := range map[string]bool{"dir": true, "f": true, "a\x00": true} {
			c := context.Background()
			if path == "f" {
				c = ctx
			}
			got, err := look.Inspect(c, env, call("path", path, "content", "y\n", "diff", diff), nil)
			if got != tool.Unclear || (err != nil) != wantErr {
				t.Errorf("got %s %q: %s, %v, want got = tool.Unclear and (err != nil) = %v",
					tl.Spec().Name, path, got, err, wantErr)
			}
		}
		if got, err := look.Inspect(ctx, env, json.RawMessage(`{`), nil); got != tool.Unclear || err == nil {
			t.Errorf("%s: no input: %s, %v", tl.Spec().Name, got, err)
		}
	}
	// A diff that could not be read was never applied.
	if got, err := ApplyDiff().(tool.Inspector).Inspect(context.Background(), env, call("path", "f", "diff", "rubbish"), nil); got != tool.NotDone || err != nil {
		t.Errorf("got %s, %v, want got = tool.NotDone and no error", got, err)
	}
	if err := os.Truncate(filepath.Join(root, "f"), MaxEdit+1); err != nil {
		t.Fatal(err)
	}
	if got, err := ApplyDiff().(tool.Inspector).Inspect(context.Background(), env, call("path", "f", "diff", diff), nil); got != tool.Unclear || err != nil {
		t.Errorf("of a file too large: %s, %v", got, err)
	}
}

// No input, however odd, makes a tool panic, hang, or answer with what is no text;
// and a plan alone changes nothing.
func FuzzPlans(f *testing.F) {
	f.Add(`{"path":"f","content":"x","diff":"d","regex":"x"}`)
	f.Add(`{"path":"../f","regex":"(","file_pattern":"{","recursive":"yes"}`)
	f.Add(`{"files":[{"path":".","line_ranges":[[1,1]]}],"path":"\ud83d"}`)
	f.Fuzz(func(t *testing.T, in string) {
		env, root := sandbox(t, "f", "x\n", "d/g", "x\n")
		for _, tl := range All() {
			p, err := tl.Plan(t.Context(), env, json.RawMessage(in))
			if err != nil {
				var wrong *tool.InputError
				if !errors.As(err, &wrong) || wrong.Reason == "" {
					t.Errorf("%s: got %v, want errors.As(err, &wrong) and wrong.Reason != \"\"", tl.Spec().Name, err)
				}
				continue
			}
			a := p.Ask()
			if !json.Valid([]byte(a.Text)) || !utf8.ValidString(a.Title) || strings.ContainsAny(a.Title, "\n\x1b") || a.Kind != "tool" {
				t.Errorf(`%s: got %+v, want json.Valid([]byte(a.Text)) and utf8.ValidString(a.Title) and not strings.ContainsAny(a.Title, "\n\x1b") and a.Kind = "tool"`,
					tl.Spec().Name, a)
			}
			if tl.Spec().Class != tool.Read || a.Outside {
				continue
			}
			if res, err := p.Run(t.Context(), nil); err != nil || !utf8.ValidString(res.Text) {
				t.Errorf("%s: got %q, %v, want no error and utf8.ValidString(res.Text)", tl.Spec().Name, res.Text, err)
			}
		}
		if fixture.ReadFile(t, filepath.Join(root, "f")) != "x\n" {
			t.Error("a plan changed a file")
		}
	})
}
