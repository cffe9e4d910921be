package mention

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// told is a World that writes down what it is asked.
type told struct {
	asked []string
	file  func(path string) Block
	fails bool
}

func (w *told) File(_ context.Context, path string) Block {
	w.asked = append(w.asked, "file "+path)
	if w.file != nil {
		return w.file(path)
	}
	return Block{Text: "[" + path + "]", Files: []tool.FileTouch{{FileState: workspace.FileState{Path: path}}}}
}

func (w *told) say(what string) (string, bool) {
	w.asked = append(w.asked, what)
	return what, !w.fails
}

func (w *told) Changes(context.Context) (string, bool)               { return w.say("changes") }
func (w *told) Problems(context.Context) (string, bool)              { return w.say("problems") }
func (w *told) Commit(_ context.Context, hash string) (string, bool) { return w.say("commit " + hash) }

func (w *told) Command(_ context.Context, name string) (slash.Command, bool, string) {
	w.asked = append(w.asked, "command "+name)
	switch name {
	case "go":
		return slash.Command{Content: "GO", Description: "goes", Mode: "ask"}, true, ""
	case "run":
		return slash.Command{Content: "RUN", Mode: "code"}, true, ""
	case "broken":
		return slash.Command{}, false, "it cannot be read"
	}
	return slash.Command{}, false, ""
}

func TestEachThingIsLookedUpOnce(t *testing.T) {
	w := &told{}
	e := Expand(t.Context(), "/go @/a @/a and @abcdef1 @abcdef1 @git-changes @git-changes @problems /go /nope /nope", w)
	want := []string{"command go", "file a", "commit abcdef1", "changes", "problems", "command nope"}
	if d := cmp.Diff(want, w.asked); d != "" {
		t.Error(d)
	}
	if len(e.Blocks) != 1 || strings.Count(e.Appended, "</git_commit>") != 1 || strings.Count(e.Commands, "<command") != 1 {
		t.Errorf(`got %+v, want len(e.Blocks) = 1 and strings.Count(e.Appended, "</git_commit>") = 1 and strings.Count(e.Commands, "<command") = 1`,
			e)
	}
	if !strings.HasPrefix(e.Text, "Command 'go' (see below for command content) 'a' 'a' and Git commit 'abcdef1'") || !strings.HasSuffix(e.Text, " /nope /nope") {
		t.Errorf("text %q", e.Text)
	}
}

func TestWordsWithoutMentionsStayAsTheyAre(t *testing.T) {
	for _, text := range []string{"", "hello", "a@b.c and x/y", "line\r\n\ttab \\@/a", "@", "<user_message>\n\n</user_message>"} {
		w := &told{}
		if e := Expand(t.Context(), text, w); e.Text != text || e.Appended != "" || e.Blocks != nil || len(w.asked) > 0 {
			t.Errorf("%q becomes %+v", text, e)
		}
	}
}

func TestTheBlankBeforeACommandStays(t *testing.T) {
	e := Expand(t.Context(), "see @/a\n/go now", &told{})
	if e.Text != "see 'a'\nCommand 'go' (see below for command content) now" || e.Blocks[0].Path != "a" {
		t.Errorf(`got %+v, want e.Text = "see 'a'\nCommand 'go' (see below for command content) now" and e.Blocks[0].Path = "a"`,
			e)
	}
	if e.Commands != "<command name=\"go\">\nDescription: goes\n\nGO\n</command>" {
		t.Errorf(`got %q, want e.Commands = "<command name=\"go\">\nDescription: goes\n\nGO\n</command>"`,
			e.Commands)
	}
}

func TestACommandInsideAMentionIsNone(t *testing.T) {
	w := &told{}
	e := Expand(t.Context(), `@/a\ /go`, w)
	if e.Text != "'a /go'" || e.Commands != "" || e.Mode != "" {
		t.Errorf(`got %+v, want e.Text = "'a /go'" and e.Commands = "" and e.Mode = ""`, e)
	}
}

func TestTheFirstModeCounts(t *testing.T) {
	if e := Expand(t.Context(), "/run then /go", &told{}); e.Mode != "code" || !strings.Contains(e.Commands, "</command>\n\n<command name=\"go\">") {
		t.Errorf(`got %+v, want e.Mode = "code" and strings.Contains(e.Commands, "</command>\n\n<command name=\"go\">")`,
			e)
	}
}

func TestAddressesAreOnlyQuoted(t *testing.T) {
	w := &told{}
	e := Expand(t.Context(), "@https://e.org/x, @file:///etc/passwd", w)
	if e.Text != "'https://e.org/x', @file:///etc/passwd" || len(w.asked) > 0 {
		t.Errorf("%+v, asked %v", e, w.asked)
	}
}

// What cannot be had is told to the model in its place, and to the person.
func TestFailuresAreTold(t *testing.T) {
	w := &told{fails: true, file: func(path string) Block { return failedBlock(path, "there is none") }}
	e := Expand(t.Context(), "@/a @abcdef1 @git-changes @problems @terminal /broken", w)
	if len(e.Notes) != 6 {
		t.Errorf("notes %q", e.Notes)
	}
	for _, want := range []string{"<git_commit hash=\"abcdef1\">\ncommit abcdef1\n</git_commit>", "<git_working_state>\nchanges\n", "<workspace_diagnostics>\nproblems\n", "<terminal_output>\nThere is no terminal"} {
		if !strings.Contains(e.Appended, want) {
			t.Errorf("%q is not in %q", want, e.Appended)
		}
	}
	if e.Blocks[0].Text != "[read_file for 'a']\nError: there is none" || !strings.HasSuffix(e.Text, " /broken") {
		t.Errorf(`got %+v, want e.Blocks[0].Text = "[read_file for 'a']\nError: there is none" and strings.HasSuffix(e.Text, " /broken")`,
			e)
	}
}

func TestTextIsBounded(t *testing.T) {
	w := &told{file: func(path string) Block {
		return Block{Text: strings.Repeat("x", maxText/3), Files: []tool.FileTouch{{FileState: workspace.FileState{Path: path}}}}
	}}
	e := Expand(t.Context(), "@/a @/b @/c @/d", w)
	size := 0
	for _, b := range e.Blocks {
		size += len(b.Text)
	}
	last := e.Blocks[3]
	if size > maxText+1000 || len(e.Blocks) != 4 || !strings.Contains(last.Text, "left out") || last.Files != nil || len(e.Notes) == 0 {
		t.Errorf("%d bytes, notes %v, the last %+v", size, e.Notes, last)
	}
}

func TestImagesAreBounded(t *testing.T) {
	picture := json.RawMessage(`"` + strings.Repeat("A", maxImageBytes/10) + `"`)
	for name, image := range map[string]json.RawMessage{"many": json.RawMessage(`{}`), "large": picture} {
		w := &told{file: func(path string) Block {
			return Block{Text: "a picture", Images: []json.RawMessage{image}, Files: []tool.FileTouch{{FileState: workspace.FileState{Path: path}}}}
		}}
		var words []string
		for i := range 30 {
			words = append(words, fmt.Sprintf("@/%d.png", i))
		}
		count, size := 0, 0
		e := Expand(t.Context(), strings.Join(words, " "), w)
		for _, b := range e.Blocks {
			if len(b.Images) == 0 && len(b.Files) > 0 {
				t.Errorf("%s: the model is said to know %s", name, b.Path)
			}
			for _, i := range b.Images {
				count, size = count+1, size+len(i)
			}
		}
		if count == 0 || count > maxImages || size > maxImageBytes || len(e.Blocks) != 30 || len(e.Notes) != 30-count {
			t.Errorf("%s: %d images of %d bytes in %d blocks, %d notes", name, count, size, len(e.Blocks), len(e.Notes))
		}
	}
}

func TestLookupsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 4 * maxLookups {
		fmt.Fprintf(&b, "@/f%d /c%d ", i, i)
	}
	w := &told{}
	e := Expand(t.Context(), b.String(), w)
	if len(w.asked) > 2*maxLookups || len(e.Blocks) != maxLookups || !strings.Contains(e.Text, fmt.Sprintf("'f%d'", 4*maxLookups-1)) {
		t.Errorf("%d look-ups, %d blocks", len(w.asked), len(e.Blocks))
	}
}
