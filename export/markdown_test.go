package export

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/terminal"
)

func TestMarkdownOfATask(t *testing.T) {
	v := newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"not this"}]`,
		`[{"role":"user","content":[{"type":"text","text":"my key is `+secret+`"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"1","name":"x","input":{"b":"`+secret+`","2":[],"1":{"k":1.50}}}]}]`)).open("t1")
	var out bytes.Buffer
	r, err := Markdown(t.Context(), &out, v, Options{Mask: redact.New()})
	fixture.NoError(t, err)
	want := "**User:**\n\nmy key is " + masked + "\n\n---\n\n**Assistant:**\n\n[Reasoning]\nhm\n[Tool Use: x]\n1: {\n  \"k\": 1.5\n}\n2: []\nB: " + masked + "\n\n"
	if out.String() != want || r.Masked != 2 {
		t.Errorf("masked %d, got\n%q\nwant\n%q", r.Masked, out.String(), want)
	}
	out.Reset()
	if r, err = Markdown(t.Context(), &out, v, Options{}); err != nil || r.Masked != 0 || strings.Count(out.String(), secret) != 2 {
		t.Errorf("without a redactor: %+v, %v\n%s", r, err, out.String())
	}
}

// Roo would write an empty file for a task that has lost the history of the model.
func TestMarkdownOfOnlyTheRows(t *testing.T) {
	v := newStorage(t, map[string]string{"ui_messages.json": `[{"ts":1,"type":"say","say":"text","text":"do it"},{"ts":2,"type":"say","say":"text","text":"done"},{"ts":3,"type":"ask","ask":"command","text":"ls -l"}]`}).open("t1")
	if len(v.State.API()) > 0 {
		t.Skip("the model's history is made from the rows")
	}
	var out bytes.Buffer
	_, err := Markdown(t.Context(), &out, v, Options{})
	fixture.NoError(t, err)
	got := out.String()
	if !strings.HasPrefix(got, "**User:**\n\ndo it\n\n---\n\n**Assistant:**\n\ndone\n\n---\n\n") || !strings.Contains(got, "ls -l") {
		t.Errorf("got\n%s", got)
	}
}

func TestMarkdownOfOddMessages(t *testing.T) {
	cases := []struct{ name, raw, want string }{
		{"no content", `{"role":"user"}`, "[no content]"},
		{"null content", `{"role":"user","content":null}`, "[no content]"},
		{"reasoning on its own", `{"type":"reasoning","text":"hm"}`, "[Reasoning]\nhm"},
		{"not an object", `7`, ""},
		{"a block that is none", `{"content":[7,"x",null]}`, "[Unexpected content type: ]\n[Unexpected content type: ]\n[Unexpected content type: ]"},
		{"result within a result", `{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":"in"}]}]}`, "[Tool]\n[Tool]\nin"},
		{"same name twice", `{"content":[{"type":"tool_use","name":"n","input":{"a":1,"a":2}}]}`, "[Tool Use: n]\nA: 2"},
		{"names without case", `{"content":[{"type":"tool_use","name":"n","input":{"日":1,"éa":2,"𝒶b":3}}]}`, "[Tool Use: n]\n日: 1\nÉa: 2\n𝒶b: 3"},
		{"upper case of two characters", `{"content":[{"type":"tool_use","name":"n","input":{"ßx":1}}]}`, "[Tool Use: n]\nSSx: 1"},
		{"an array as input", `{"content":[{"type":"tool_use","name":"n","input":[1,{"a":2},"s"]}]}`, "[Tool Use: n]\n0: 1\n1: {\n  \"a\": 2\n}\n2: s"},
		{"redacted", `{"content":[{"type":"redacted_thinking","data":"x"}]}`, "[Reasoning]\n(encrypted)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := markdownContent([]byte(c.raw)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWellFormed(t *testing.T) {
	for in, want := range map[string]string{
		"plain é":                         "plain é",
		"a\xed\xa0\x80b":                  "a\ufffdb",
		"\xed\xb0\x80\xed\xb0\x80":        "\ufffd\ufffd", // two lone halves are two characters
		"\xff\xfe":                        "\ufffd\ufffd",
		"\xed\xa0":                        "\ufffd\ufffd",
		strings.Repeat("\xed\xa0\x80", 3): "\ufffd\ufffd\ufffd",
	} {
		if got := terminal.WellFormed(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

type full struct{ room int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A disk that is full is an error of every form: half an export must not look whole.
func TestEveryFormFailsOnAFullDisk(t *testing.T) {
	rows := "[" + strings.Repeat(`{"ts":1,"type":"say","say":"text","text":"`+strings.Repeat("word ", 50)+`"},`, 200) + `{"ts":2}]`
	s := newStorage(t, folder(rows, strings.ReplaceAll(rows, `"text":`, `"role":"user","content":`)))
	v := s.open("t1")
	for _, room := range []int{0, 1000, 50000} {
		for name, form := range map[string]func() error{
			"md":      func() error { _, err := Markdown(t.Context(), &full{room}, v, Options{}); return err },
			"masked":  func() error { _, err := Markdown(t.Context(), &full{room}, v, Options{Mask: redact.New()}); return err },
			"html":    func() error { _, err := HTML(t.Context(), &full{room}, v, Options{}); return err },
			"json":    func() error { _, err := JSON(t.Context(), &full{room}, v, Options{}); return err },
			"archive": func() error { _, err := Archive(t.Context(), &full{min(room, 500)}, one(v), nothingKept); return err },
		} {
			if err := form(); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: %v", name, room, err)
			}
		}
	}
}

func TestNames(t *testing.T) {
	berlin := time.FixedZone("CEST", 2*3600)
	if got := MarkdownName(1776200000000, berlin); got != "roo_task_apr-14-2026_10-53-20-pm.md" {
		t.Error(got)
	}
	for in, want := range map[string]string{
		"187700e7-7712": "187700e7-7712", "..": "%2E.", ".hidden": "%2Ehidden", "a/b\\c": "a%2Fb%5Cc",
		"a b": "a%20b", "\xff": "%FF", "100%": "100%25", "日": "%E6%97%A5", "nul:": "nul%3A",
	} {
		if got := FileName(in); got != want {
			t.Errorf("%q is named %q, want %q", in, got, want)
		}
	}
	long := strings.Repeat("日", 85) // 255 bytes, each of which takes three
	one, two := FileName(long), FileName(long+"x")
	for _, name := range []string{one, two} {
		if err := os.WriteFile(filepath.Join(t.TempDir(), name+".archive~9999"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if one == two {
		t.Errorf("two ids have one name, %q", one)
	}
	if whole := strings.Repeat("a", nameMost); FileName(whole) != whole {
		t.Errorf("a name that fits is %q", FileName(whole))
	}
}
