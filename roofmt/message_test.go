package roofmt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/roofmt"
)

// The spellings by which programs are told apart, each alone in a folder that
// says nothing else.
func TestSignsOfPrograms(t *testing.T) {
	row := func(members string) map[string]string {
		return map[string]string{roofmt.UIName: `[{"ts":1,"type":"say","say":"text"},{"ts":2,` + members + `}]`}
	}
	for _, c := range []struct {
		files map[string]string
		want  roofmt.Tool
	}{
		{row(`"type":"say","say":"checkpoint_created"`), roofmt.Cline},
		{row(`"type":"say","say":"task_progress"`), roofmt.Cline},
		{row(`"type":"ask","ask":"plan_mode_respond"`), roofmt.Cline},
		{row(`"type":"say","say":"text","conversationHistoryIndex":0`), roofmt.Cline},
		{row(`"type":"say","say":"text","modelInfo":{}`), roofmt.Cline},
		{row(`"type":"say","say":"checkpoint_saved"`), roofmt.Roo},
		{row(`"type":"say","say":"user_edit_todos"`), roofmt.Roo},
		{row(`"type":"ask","ask":"tool","progressStatus":{}`), roofmt.Roo},
		{row(`"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"openai\"}"`), roofmt.Roo},
		{row(`"type":"say","say":"api_req_started","text":"{\"cost\":1}"`), roofmt.UnknownTool},
		{row(`"type":"say","say":"text","text":"checkpoint_saved apiProtocol"`), roofmt.UnknownTool},
		{map[string]string{roofmt.ContextName: `[]`}, roofmt.Cline},
		{map[string]string{roofmt.ItemName: `{"id":"x"}`}, roofmt.Roo},
		{map[string]string{roofmt.MetadataName: `{"files_in_context":[{"path":"a"},{"cline_read_date":1}]}`}, roofmt.Cline},
		{map[string]string{roofmt.MetadataName: `{"files_in_context":[{"roo_read_date":1}]}`}, roofmt.Roo},
		{map[string]string{roofmt.MetadataName: `{"files_in_context":7}`}, roofmt.UnknownTool},
		{map[string]string{roofmt.ItemName: `{broken`}, roofmt.UnknownTool},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		if tool := read(t, dir).Tool; tool != c.want {
			t.Errorf("%v: got %q, want %q", c.files, tool, c.want)
		}
	}
}

// The path speaks before the content: a task that changed hands lies where it is.
func TestThePathSpeaksFirst(t *testing.T) {
	for path, want := range map[string]roofmt.Tool{
		"x/rooveterinaryinc.roo-cline/tasks/1":        roofmt.Roo,
		"x/RooVeterinaryInc.Roo-Code-Nightly/tasks/1": roofmt.Roo,
		"x/roo-code.roo-cline/tasks/1":                roofmt.Roo,
		"x/.vscode-mock/global-storage/tasks/1":       roofmt.Roo,
		"x/.agentz/tasks/1":                           roofmt.Roo,
		"x/zoocodeorganization.zoo-code/tasks/1":      roofmt.Zoo,
		"x/kilocode.kilo-code/tasks/1":                roofmt.Kilo,
		"x/.cline/data/tasks/1":                       roofmt.Cline,
		"x/clinetasks/1":                              roofmt.UnknownTool,
	} {
		dir := filepath.Join(t.TempDir(), filepath.FromSlash(path))
		mkdirs(t, dir)
		if tool := read(t, dir).Tool; tool != want {
			t.Errorf("%s: got %q, want %q", path, tool, want)
		}
	}
	dir := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev", "tasks", "1")
	mkdirs(t, dir)
	write(t, dir, map[string]string{roofmt.UIName: `[{"ts":1,"type":"say","say":"checkpoint_saved"}]`})
	if tool := read(t, dir).Tool; tool != roofmt.Cline {
		t.Errorf("got %q, want roofmt.Cline", tool)
	}
}

// A sign at the far end of a long task is found; the middle is not looked at.
func TestSignsAtBothEnds(t *testing.T) {
	const sign = `{"ts":1,"type":"say","say":"checkpoint_saved"}`
	for at, want := range map[int]roofmt.Tool{0: roofmt.Roo, 63: roofmt.Roo, 300: roofmt.UnknownTool, 599: roofmt.Roo} {
		rows := make([]string, 600)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"ts":%d,"type":"say","say":"text"}`, i)
		}
		rows[at] = sign
		dir := t.TempDir()
		write(t, dir, map[string]string{roofmt.UIName: "[" + strings.Join(rows, ",") + "]"})
		if tool := read(t, dir).Tool; tool != want {
			t.Errorf("at %d: got %q, want %q", at, tool, want)
		}
	}
}

// Replace does all that it was asked for or nothing, whatever stands there.
func TestReplaceIsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "roofmt-replace-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		names := []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName}
		before := map[string]string{}
		for _, name := range names {
			if rapid.Bool().Draw(r, "there") {
				before[name] = "old " + name
				if err := os.WriteFile(filepath.Join(dir, name), []byte(before[name]), 0o600); err != nil {
					r.Fatal(err)
				}
			}
		}
		prints, err := roofmt.Prints(dir)
		if err != nil {
			r.Fatal(err)
		}
		boom := errors.New("boom")
		var list []roofmt.Replacement
		fails := false
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(r, "files") {
			x := roofmt.Replacement{Name: name, Bytes: []byte("new " + name), Done: &roofmt.Fingerprint{}}
			switch rapid.SampledFrom([]string{"any", "as it is", "as it is", "as it is", "as it was", "fails"}).Draw(r, "expect") {
			case "as it is":
				print := prints[name]
				x.Expect = &print
			case "as it was":
				x.Expect, fails = &roofmt.Fingerprint{Exists: true, Size: 1}, true
			case "fails":
				x.Write, fails = func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return boom }, true
			}
			list = append(list, x)
		}
		err = roofmt.Replace(context.Background(), dir, list, roofmt.Options{})
		if (err != nil) != fails {
			r.Fatalf("%v, should fail: %v", err, fails)
		}
		if err == nil {
			for _, x := range list {
				before[x.Name] = "new " + x.Name
			}
		}
		after := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			r.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				r.Fatal(err)
			}
			after[e.Name()] = string(data)
		}
		if d := cmp.Diff(before, after); d != "" {
			r.Fatal(d)
		}
		prints, err = roofmt.Prints(dir)
		if err != nil {
			r.Fatal(err)
		}
		for _, x := range list {
			if !fails && *x.Done != prints[x.Name] {
				r.Fatalf("%s: done %v, there %v", x.Name, *x.Done, prints[x.Name])
			}
			if fails && x.Done.Exists {
				r.Fatalf("%s counts as done", x.Name)
			}
		}
	})
}

// The context ends a write before it begins, and leaves nothing.
func TestReplaceStopped(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	wrote := false
	err := roofmt.Replace(ctx, dir, []roofmt.Replacement{
		{Name: roofmt.APIName, Write: func(io.Writer) error { cancel(); return nil }},
		{Name: roofmt.UIName, Write: func(io.Writer) error { wrote = true; return nil }},
	}, roofmt.Options{})
	if !errors.Is(err, context.Canceled) || wrote {
		t.Errorf("%v, wrote %v", err, wrote)
	}
	assertClean(t, dir)
}

func ExampleReplace() {
	dir, _ := os.MkdirTemp("", "task")
	defer os.RemoveAll(dir)
	print := roofmt.Fingerprint{} // it must not be there yet
	put := func() error {
		return roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.UIName, Bytes: []byte(`[]`), Expect: &print}}, roofmt.Options{})
	}
	fmt.Println(put())
	fmt.Println(errors.Is(put(), roofmt.ErrChanged))
	// Output:
	// <nil>
	// true
}
