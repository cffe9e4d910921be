package historytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// kept is an environment with one output.
func kept(text string) tool.Env {
	return tool.Env{Kept: func(name string) (io.ReaderAt, int64, bool) {
		if name != "cmd-1.txt" {
			return nil, 0, false
		}
		return strings.NewReader(text), int64(len(text)), true
	}}
}

func call(t interface{ Fatal(...any) }, tl tool.Tool, env tool.Env, input string) (tool.Ask, tool.Result) {
	p, err := tl.Plan(context.Background(), env, json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	ask := p.Ask()
	if !esjson.Valid([]byte(ask.Text)) || ask.Tool != tl.Spec().Name || strings.ContainsAny(ask.Title, "\n\x1b") {
		t.Fatal(fmt.Sprintf("ask %+v", ask))
	}
	r, err := p.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return ask, r
}

func TestReadAPiece(t *testing.T) {
	env := kept("one\ntwo\nthree\n")
	for input, want := range map[string]string{
		`{"artifact_id":"cmd-1.txt"}`:                                    "[Command Output: cmd-1.txt]\nTotal size: 14 bytes | Showing bytes 0-14 | COMPLETE\n1 | one\n2 | two\n3 | three\n4 | ",
		`{"artifact_id":"cmd-1.txt","offset":4,"limit":3,"search":null}`: "[Command Output: cmd-1.txt]\nTotal size: 14 bytes | Showing bytes 4-7 | TRUNCATED\n2 | two",
		`{"artifact_id":"cmd-1.txt","offset":"8","limit":"100"}`:         "[Command Output: cmd-1.txt]\nTotal size: 14 bytes | Showing bytes 8-14 | COMPLETE\n3 | three\n4 | ",
		`{"artifact_id":"cmd-1.txt","search":"T(WO|HREE)"}`:              "[Command Output: cmd-1.txt] (search: \"T(WO|HREE)\")\nTotal matches: 2 | Showing first 2\n\n    2 | two\n    3 | three",
		`{"artifact_id":"cmd-1.txt","search":"o","limit":3}`:             "[Command Output: cmd-1.txt] (search: \"o\")\nTotal matches: 2 | Showing first 1\n\n    1 | one",
		`{"artifact_id":"cmd-1.txt","search":"t("}`:                      "[Command Output: cmd-1.txt] (search: \"t(\")\nTotal size: 14 bytes\n\nNo matches found for the search pattern.",
		`{"artifact_id":"cmd-2.txt"}`:                                    "Error: Artifact not found: \"cmd-2.txt\". An output is kept under an artifact id when a command's result shows only a part of it.",
	} {
		_, r := call(t, ReadOutput(), env, input)
		if r.Text != want || r.IsError != strings.HasPrefix(want, "Error") {
			t.Errorf("%s:\n got %q\nwant %q", input, r.Text, want)
		}
	}
	ask, _ := call(t, ReadOutput(), env, `{"artifact_id":"cmd-1.txt","offset":4,"limit":3}`)
	if ask.Text != `{"tool":"readCommandOutput","readStart":4,"readEnd":7,"totalBytes":14}` || ask.Outside || ask.Protected {
		t.Errorf("got %+v, want ask.Text = `{\"tool\":\"readCommandOutput\",\"readStart\":4,\"readEnd\":7,\"totalBytes\":14}` and not ask.Outside and not ask.Protected",
			ask)
	}
	ask, _ = call(t, ReadOutput(), env, `{"artifact_id":"cmd-1.txt","search":"x\u001b[2K"}`)
	if !strings.Contains(ask.Text, `"readEnd":14,"totalBytes":14,"searchPattern":"x`) {
		t.Errorf("got %+v, want strings.Contains(ask.Text, `\"readEnd\":14,\"totalBytes\":14,\"searchPattern\":\"x`)",
			ask)
	}
}

func TestMistakesOfTheModel(t *testing.T) {
	lister := ListTasks("", some{}.tasks)
	for _, tt := range []struct {
		tool  tool.Tool
		input string
	}{
		{ReadOutput(), ``}, {ReadOutput(), `[]`}, {ReadOutput(), `{}`}, {ReadOutput(), `{"artifact_id":null}`}, {ReadOutput(), `{"artifact_id":7}`}, {ReadOutput(), `{"artifact_id":"../../etc/passwd"}`},
		{ReadOutput(), `{"artifact_id":"cmd-1.txt\n"}`}, {ReadOutput(), `{"artifact_id":"cmd-1.txt","offset":-1}`}, {ReadOutput(), `{"artifact_id":"cmd-1.txt","offset":3}`},
		{ReadOutput(), `{"artifact_id":"cmd-1.txt","limit":0}`}, {ReadOutput(), `{"artifact_id":"cmd-1.txt","limit":1.5}`}, {ReadOutput(), `{"artifact_id":"cmd-1.txt","limit":"many"}`}, {ReadOutput(), `{"artifact_id":"cmd-1.txt","search":["x"]}`},
		{lister, `{`}, {lister, `{"limit":0}`}, {lister, `{"limit":"all"}`}, {lister, `{"query":3}`}, {lister, `{}`},
	} {
		_, err := tt.tool.Plan(t.Context(), kept("abc"), json.RawMessage(tt.input))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Reason == "" || wrong.Tool != tt.tool.Spec().Name {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and wrong.Reason != \"\" and wrong.Tool = tt.tool.Spec().Name",
				tt.input, err)
		}
	}
	if _, r := call(t, ReadOutput(), tool.Env{}, `{"artifact_id":"cmd-1.txt"}`); !r.IsError {
		t.Errorf("nothing is kept, and %q is read", r.Text)
	}
}

// Whoever reads piece by piece, from where one says it ended, reads all of it.
func TestPiecesMakeTheWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab\né日😀"))).Draw(r, "text")
		limit := rapid.IntRange(1, 12).Draw(r, "limit")
		whole, at := "", 0
		for at < len(text) {
			_, res := call(r, ReadOutput(), kept(text), fmt.Sprintf(`{"artifact_id":"cmd-1.txt","offset":%d,"limit":%d}`, at, limit))
			head, body, _ := strings.Cut(res.Text, "\n")
			status, body, _ := strings.Cut(body, "\n")
			var from, to int
			if _, err := fmt.Sscanf(status[strings.Index(status, "bytes ")+6:], "bytes %d-%d", &from, &to); err != nil {
				if _, err := fmt.Sscanf(status[strings.LastIndex(status, "bytes ")+6:], "%d-%d", &from, &to); err != nil {
					r.Fatal(head, status, err)
				}
			}
			if from != at || to <= at || to > len(text) {
				r.Fatalf("%q: from %d to %d at %d", text, from, to, at)
			}
			first := strings.Count(text[:at], "\n") + 1
			for i, line := range strings.Split(body, "\n") {
				number, rest, ok := strings.Cut(line, " | ")
				if !ok || strings.TrimSpace(number) != fmt.Sprint(first+i) {
					r.Fatalf("%q is not line %d", line, first+i)
				}
				if i > 0 {
					whole += "\n"
				}
				whole += rest
			}
			at = to
		}
		if utf8.ValidString(text) && limit >= 4 && whole != text {
			r.Fatalf("%q is read as %q", text, whole)
		}
	})
}

// endless is an output of which every line is the same.
type endless struct{ line string }

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = e.line[(off+int64(i))%int64(len(e.line))]
	}
	return len(p), nil
}

func TestLargeOutputs(t *testing.T) {
	size := int64(4 << 20)
	env := tool.Env{Kept: func(string) (io.ReaderAt, int64, bool) { return endless{strings.Repeat("x", 99) + "\n"}, size, true }}
	_, r := call(t, ReadOutput(), env, `{"artifact_id":"cmd-1.txt","limit":99999999}`)
	if len(r.Text) > 2*MaxPiece || !strings.Contains(r.Text, "4.0MB | Showing bytes 0-1048576 | TRUNCATED") {
		t.Errorf("%d bytes: %.200q", len(r.Text), r.Text)
	}
	_, r = call(t, ReadOutput(), env, `{"artifact_id":"cmd-1.txt","search":"x$","limit":1000}`)
	if len(r.Text) > 2000 || !strings.Contains(r.Text, "Total matches: 41944 | Showing first 9") {
		t.Errorf("%d bytes: %.200q", len(r.Text), r.Text)
	}
	_, r = call(t, ReadOutput(), kept(strings.Repeat("y", 1<<20)+"\nfound"), `{"artifact_id":"cmd-1.txt","search":"found|yy"}`)
	if len(r.Text) > maxLine+1000 || !strings.Contains(r.Text, "Total matches: 2") {
		t.Errorf("%d bytes: %.200q", len(r.Text), r.Text)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	p, err := ReadOutput().Plan(t.Context(), env, json.RawMessage(`{"artifact_id":"cmd-1.txt","search":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a search goes on: %v", err)
	}
	_, r = call(t, ReadOutput(), kept(strings.Repeat("\n", 1<<20)), `{"artifact_id":"cmd-1.txt","search":"^$"}`)
	if len(r.Text) > Piece+200 {
		t.Errorf("a search for empty lines: got %d bytes, want at most %d", len(r.Text), Piece)
	}
}

// broken fails from an offset on.
type broken struct{ from int64 }

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, errors.New("the disk is gone")
	}
	return len(p), nil
}

func TestAnOutputThatCannotBeReadIsAnError(t *testing.T) {
	env := tool.Env{Kept: func(string) (io.ReaderAt, int64, bool) { return broken{10}, 100, true }}
	for _, input := range []string{`{"artifact_id":"cmd-1.txt"}`, `{"artifact_id":"cmd-1.txt","search":"x"}`, `{"artifact_id":"cmd-1.txt","offset":50}`} {
		p, err := ReadOutput().Plan(t.Context(), env, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Run(t.Context(), nil); err == nil {
			t.Errorf("%s: got %+v, want an error", input, r)
		}
	}
}
