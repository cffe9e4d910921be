package mention

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// fixed is a workspace with set answers of git and a set of commands.
type fixed struct {
	Disk
	commands conformance.Value
}

func (f fixed) Changes(context.Context) (string, bool) { return "GIT-STATE", true }

func (f fixed) Commit(_ context.Context, hash string) (string, bool) { return "COMMIT " + hash, true }

func (f fixed) Command(_ context.Context, name string) (slash.Command, bool, string) {
	c := f.commands.Get(name)
	return slash.Command{Name: name, Content: c.Str("content"), Description: c.Str("description"), Mode: c.Str("mode")}, c != nil, ""
}

func vectorFixture(t *testing.T, in conformance.Value) fixed {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range esjson.Members(in.Get("files")) {
		content, _ := esjson.Unquote(text)
		put(name, content)
	}
	if rules := in.Get("rooignore"); rules != nil {
		put(".rooignore", in.Str("rooignore"))
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fixed{Disk{Workspace: ws}, in.Get("commands")}
}

func TestVectorsMentions(t *testing.T) {
	conformance.Run(t, "mentions", func(t *testing.T, c conformance.Case) bool {
		text := c.Input.Str("text")
		if c.Input.Str("fn") == "scan" {
			checkScan(t, text, c.Want)
			return false
		}
		w := vectorFixture(t, c.Input)
		want := wanted{c.Want, c.Input}
		got := Expand(t.Context(), text, w)
		// Roo takes the blank before a command away, which joins the words around it.
		// What it then finds must be what is found here in the text that it made.
		if joined, differs, inside := rooJoins(text, w); differs {
			if !inside {
				want.commands(t, got)
			}
			w.commands = nil
			want.rest(t, Expand(t.Context(), joined, w))
			return true
		}
		want.commands(t, got)
		want.rest(t, got)
		return want.unescapes()
	})
}

// rooJoins replaces the known commands of a text as Roo does. It reports whether a
// blank is lost by it, and whether a command stands inside a mention.
func rooJoins(text string, w fixed) (joined string, differs, inside bool) {
	joined = text
	for _, c := range Commands(text) {
		if w.commands.Get(c.Name) == nil {
			continue
		}
		_, blank := utf8.DecodeLastRuneInString(text[:c.At])
		differs = differs || blank > 0
		joined = strings.Replace(joined, text[c.At-blank:c.End], "Command '"+c.Name+"' (see below for command content)", 1)
		for _, m := range Scan(text) {
			inside = inside || m.At < c.At && c.At < m.End
		}
	}
	return joined, differs, inside
}

func checkScan(t *testing.T, text string, want conformance.Value) {
	t.Helper()
	var found []byte
	for i, m := range Scan(text) {
		var o esjson.Object
		o.String("mention", m.Name)
		o.Int("at_utf16", int64(len(utf16.Encode([]rune(text[:m.At])))))
		if i > 0 {
			found = append(found, ',')
		}
		found = append(found, o.Bytes()...)
	}
	if all := []byte("[" + string(found) + "]"); !esjson.Equal(all, want.Get("mentions")) {
		t.Errorf("%q\n got %s\nwant %s", text, all, want.Get("mentions"))
	}
	var names []string
	for _, c := range Commands(text) {
		names = append(names, c.Name)
	}
	if got, want := strings.Join(names, " "), strings.Join(want.Get("commands").Strings(), " "); got != want {
		t.Errorf("%q: commands %q, want %q", text, got, want)
	}
}

// wanted is what Roo does with the words of a case.
type wanted struct{ want, input conformance.Value }

// unescapes reports whether the words hold an escaped path: Roo shows its
// backslashes to the model, and we do not.
func (w wanted) unescapes() bool {
	for _, m := range Scan(w.input.Str("text")) {
		if m.Kind == File && strings.Contains(m.Name, `\ `) {
			return true
		}
	}
	return false
}

// plain is what Roo writes with the mentions in it unescaped.
func (w wanted) plain(text string) string {
	for _, m := range Scan(w.input.Str("text")) {
		if m.Kind == File {
			text = strings.ReplaceAll(text, "'"+m.Name[1:]+"'", "'"+m.Path+"'")
			text = strings.ReplaceAll(text, "File: "+m.Name[1:]+"\n", "File: "+m.Path+"\n")
			text = strings.ReplaceAll(text, "[read_file for '"+m.Name[1:], "[read_file for '"+m.Path)
		}
	}
	return text
}

func (w wanted) commands(t *testing.T, got Expansion) {
	t.Helper()
	if got.Commands != w.want.Str("slash_command_help") || got.Mode != w.want.Str("mode") {
		t.Errorf("commands %q in mode %q, want %q in %q", got.Commands, got.Mode, w.want.Str("slash_command_help"), w.want.Str("mode"))
	}
}

func (w wanted) rest(t *testing.T, got Expansion) {
	t.Helper()
	if want := w.plain(w.want.Str("text")); got.Text+got.Appended != want {
		t.Errorf("text %q\nwant %q", got.Text+got.Appended, want)
	}
	blocks := w.want.Get("blocks").List()
	if len(blocks) != len(got.Blocks) {
		t.Fatalf("%d blocks, want %d", len(got.Blocks), len(blocks))
	}
	var tracked [][2]string
	for i, b := range got.Blocks {
		want := conformance.Value(blocks[i])
		w.block(t, b, want)
		for _, f := range b.Files {
			tracked = append(tracked, [2]string{f.Path, f.Source})
		}
	}
	list := w.want.Get("tracked").List()
	if len(list) != len(tracked) {
		t.Fatalf("tracked %v, want %s", tracked, w.want.Get("tracked"))
	}
	for i, raw := range list {
		pair := conformance.Value(raw).Strings()
		if strings.ReplaceAll(pair[0], `\ `, " ") != tracked[i][0] || pair[1] != tracked[i][1] {
			t.Errorf("tracked %v, want %v", tracked[i], pair)
		}
	}
}

func (w wanted) block(t *testing.T, b Block, want conformance.Value) {
	t.Helper()
	kind := "file"
	if b.Folder {
		kind = "folder"
	}
	if b.Path != strings.ReplaceAll(want.Str("path"), `\ `, " ") || kind != want.Str("type") {
		t.Errorf("block %s %q, want %s", kind, b.Path, want)
	}
	if want.Bool("error", false) {
		if b.Problem == "" || len(b.Files) > 0 {
			t.Errorf("%q is shown: %q, and no error", b.Path, b.Text)
		}
		return
	}
	text := w.plain(want.Str("content"))
	if kind == "folder" && w.input.Has("rooignore") {
		// The last name that is shown ends the tree here; in Roo the last one there is.
		text, b.Text = strings.ReplaceAll(text, "└──", "├──"), strings.ReplaceAll(b.Text, "└──", "├──")
	}
	if b.Text != text {
		t.Errorf("block %q\n got %.800q\nwant %.800q", b.Path, b.Text, text)
	}
	if meta := want.Get("metadata"); meta != nil {
		if int64(b.Lines) != meta.Int("totalLines", -1) || int64(b.Shown) != meta.Int("returnedLines", -1) || b.Lines > b.Shown != meta.Bool("wasTruncated", false) {
			t.Errorf("block %q: %d of %d lines, want %s", b.Path, b.Shown, b.Lines, meta)
		}
	}
}
