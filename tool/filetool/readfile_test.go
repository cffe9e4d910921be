package filetool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace"
	"pgregory.net/rapid"
)

// Pages that follow each other, as the note says to read on, give every line of
// the file once and in order.
func TestReadingOnGivesTheWholeFile(t *testing.T) {
	env, root := sandbox(t)
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "", "  b", "\tc", "é 😀", "1 | x", "\r", "IMPORTANT"}), 1, 60).Draw(r, "lines")
		limit := rapid.IntRange(1, 20).Draw(r, "limit")
		fixture.WriteFile(t, filepath.Join(root, "f"), strings.Join(lines, "\n"))
		var got []string
		for offset := 1; ; {
			_, res := run(t, env, ReadFile(), call("path", "f", "offset", offset, "limit", limit))
			text, _ := strings.CutPrefix(res.Text, "File: f\n")
			note, body, more := strings.Cut(text, "\n\n")
			if more = more && strings.HasPrefix(note, "IMPORTANT: File content truncated.\n"); !more {
				body = text
			}
			for i, l := range strings.Split(body, "\n") {
				number, rest, ok := strings.Cut(l, " | ")
				if !ok || strings.TrimSpace(number) != fmt.Sprint(offset+i) {
					r.Fatalf("line %d of the page from %d is %q", i, offset, l)
				}
				got = append(got, rest)
			}
			if !more {
				break
			}
			next := 0
			if _, err := fmt.Sscanf(note[strings.LastIndex(note, "offset="):], "offset=%d", &next); err != nil || next <= offset {
				r.Fatalf("the note leads from %d to %d: %q", offset, next, note)
			}
			offset = next
		}
		if d := cmp.Diff(lines, got); d != "" {
			r.Fatal(d)
		}
	})
}

// However much of a file a call asks for, an answer has a size that fits a model,
// and says where to go on.
func TestAnAnswerIsBounded(t *testing.T) {
	wide := strings.Repeat(strings.Repeat("x", 1999)+"\n", 3000) // 6 MB
	env, root := sandbox(t, "wide", wide)
	for _, tt := range []struct {
		name string
		in   json.RawMessage
		says string
	}{
		{"lines", call("path", "wide", "limit", 1e15), "To read more: Use the read_file tool with offset=524 and limit="},
		{"from an offset", call("path", "wide", "offset", 100, "limit", 1e15), "Showing lines 100-622 of 3001"},
		{"a range", call("path", "wide", "start_line", 1, "end_line", 1000000), "go on with line 524 of 3001]"},
		{"ranges", json.RawMessage(`{"files":[{"path":"wide","line_ranges":[[1,600],[2,3]]}]}`), "go on with line 524 of 3001]"},
		{"a range again and again", json.RawMessage(`{"files":[{"path":"wide","line_ranges":[[1,600],[1,600],[1,600],[7,9]]}]}`), "[... lines 7-9 are not shown: the answer is full]"},
		{"a block", call("path", "wide", "mode", "indentation", "limit", 1e15, "indentation", map[string]any{"anchor_line": 1, "include_siblings": true}), "File content truncated"},
	} {
		_, res := run(t, env, ReadFile(), tt.in)
		if len(res.Text) > maxShown+maxShown/50 || !strings.Contains(res.Text, tt.says) || res.IsError {
			t.Errorf("%s: %d bytes, %.200q", tt.name, len(res.Text), res.Text)
		}
		if len(res.Files) != 1 || res.Files[0].Hash != workspace.HashOf([]byte(wide)) {
			t.Errorf("%s: the hash is not that of the whole file", tt.name)
		}
	}
	// Blank lines have a size, too, and so have several files together.
	fixture.WriteFile(t, filepath.Join(root, "blank"), strings.Repeat("\n", 3<<20))
	fixture.WriteFile(t, filepath.Join(root, "short"), strings.Repeat("x\n", 3<<20))
	for _, in := range []json.RawMessage{
		call("path", "blank", "limit", 1e15),
		call("path", "short", "mode", "indentation", "limit", 1e15, "indentation", map[string]any{"anchor_line": 1, "include_siblings": true}),
	} {
		if _, res := run(t, env, ReadFile(), in); len(res.Text) > 2*maxShown || !strings.Contains(res.Text, "Showing lines 1-1") {
			t.Errorf("%s: %d bytes, %.200q, want at most %d", in, len(res.Text), res.Text, 2*maxShown)
		}
	}
	_, many := run(t, env, ReadFile(), json.RawMessage(`{"files":["wide"`+strings.Repeat(`,{"path":"wide","limit":9000}`, 9)+`,"blank"]}`))
	if len(many.Text) > 3*maxShown || many.IsError || !strings.Contains(many.Text, "File: blank\nError: it was not read: the answer is full. Read it in another call.") {
		t.Errorf("many files: %d bytes, %.200q", len(many.Text), many.Text[max(0, len(many.Text)-200):])
	}
	// One endless line, without the memory for it.
	if err := os.Truncate(filepath.Join(root, "wide"), 0); err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "line"), strings.Repeat("é", 5<<20)+"\nend")
	_, res := run(t, env, ReadFile(), call("path", "line"))
	if want := "File: line\n1 | " + strings.Repeat("é", linetext.MaxLine-3) + "...\n2 | end"; res.Text != want {
		t.Errorf("%d bytes", len(res.Text))
	}
}

func TestHugeFileIsReadInParts(t *testing.T) {
	env, root := sandbox(t, "f", "start\n")
	if err := os.Truncate(filepath.Join(root, "f"), 1<<40); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	// Its first bytes are text and then zeros: read to the end for its hash, unless
	// the caller has enough.
	fixture.WriteFile(t, filepath.Join(root, "g"), strings.Repeat("text\n", 2000))
	if err := os.Truncate(filepath.Join(root, "g"), 1<<40); err != nil {
		t.Skip(err)
	}
	start := time.Now()
	if _, err := plan(t, env, ReadFile(), call("path", "g")).Run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it was heard after %v", d)
	}
	_, res := run(t, env, ReadFile(), call("path", "g", "mode", "indentation"))
	if !res.IsError || !strings.Contains(res.Text, "too many to be read as a whole. Read parts of it") {
		t.Errorf("%.200q", res.Text)
	}
	if _, res = run(t, env, ReadFile(), call("path", "f")); !strings.Contains(res.Text, "binary file of 1099511627776 bytes") {
		t.Errorf("%.200q", res.Text)
	}
}

func TestImages(t *testing.T) {
	png, jpg := "\x89PNG\r\n\x1a\n....", "\xff\xd8\xff...."
	env, root := sandbox(t,
		"a.png", png, "A.PNG", png, "b.jpeg", jpg, "c.gif", "GIF89a..", "d.webp", "RIFF....WEBP",
		"text.png", "only text\n", "named.txt", png, "e.png", jpg, "empty.png", "", "big.png", png)
	if err := os.Truncate(filepath.Join(root, "big.png"), MaxImage+1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, media, says string }{
		{"a.png", "image/png", "Note: image (image/png, 12 bytes) follows."},
		{"A.PNG", "image/png", "image/png"},
		{"b.jpeg", "image/jpeg", "image/jpeg"},
		{"c.gif", "image/gif", "image/gif"},
		{"d.webp", "image/webp", "image/webp"},
		{"text.png", "", "1 | only text"},
		{"named.txt", "", "1 | \ufffdPNG"},
		{"e.png", "", "1 | ÿØÿ"}, // not what its name says: what it is cannot be told
		{"empty.png", "", "File: empty.png\n1 | "},
		{"big.png", "", "Note: big.png is an image of 5242881 bytes; images over 5242880 bytes are not shown."},
	} {
		_, res := run(t, env, ReadFile(), call("path", tt.path))
		if !strings.Contains(res.Text, tt.says) || (len(res.Images) == 1) != (tt.media != "") || !utf8.ValidString(res.Text) {
			t.Errorf("%s: %d images, %.200q", tt.path, len(res.Images), res.Text)
			continue
		}
		if tt.media == "" {
			continue
		}
		source := []byte(raw(string(res.Images[0]), "source"))
		data, err := base64.StdEncoding.DecodeString(str(source, "data"))
		if err != nil || string(data) != fixture.ReadFile(t, filepath.Join(root, tt.path)) || str(source, "media_type") != tt.media {
			t.Errorf("%s: %.200s", tt.path, res.Images[0])
		}
	}
}

func TestRequestsOfEveryAge(t *testing.T) {
	def := func(r request) request {
		if r.offset == 0 {
			r.offset = 1
		}
		if r.limit == 0 {
			r.limit = defaultLines
		}
		return r
	}
	for _, tt := range []struct {
		name, in string
		want     []request
		snippet  string
		first    int
	}{
		{"plain", `{"path":"a"}`, []request{{path: "a"}}, "", 0},
		{"another name", `{"file_path":"a"}`, []request{{path: "a"}}, "", 0},
		{"slice", `{"path":"a","offset":5,"limit":3}`, []request{{path: "a", offset: 5, limit: 3, hasLimit: true}}, "lines 5-7", 5},
		{"only a limit", `{"path":"a","limit":3}`, []request{{path: "a", limit: 3, hasLimit: true}}, "up to 3 lines", 0},
		{"numbers as text", `{"path":"a","offset":"5","limit":"3"}`, []request{{path: "a", offset: 5, limit: 3, hasLimit: true}}, "lines 5-7", 5},
		{"block", `{"path":"a","mode":"indentation","indentation":{"anchor_line":9,"max_levels":2,"include_siblings":true,"include_header":false,"max_lines":50}}`,
			[]request{{path: "a", indentation: true, options: indentOptions{anchor: 9, levels: 2, siblings: true, limit: defaultLines, maxLines: 50}}}, "indentation mode at line 9", 9},
		{"block, options beside", `{"path":"a","mode":"indentation","anchor_line":"9"}`, []request{{path: "a", indentation: true, options: indentOptions{anchor: 9, header: true, limit: defaultLines}}}, "indentation mode at line 9", 9},
		{"block at the offset", `{"path":"a","mode":"indentation","offset":4}`, []request{{path: "a", offset: 4, indentation: true, options: indentOptions{anchor: 4, header: true, limit: defaultLines}}}, "indentation mode at line 4", 4},
		{"files by name", `{"files":["a","b"]}`, []request{{path: "a"}, {path: "b"}}, "", 0},
		{"ranges as objects", `{"files":[{"path":"a","lineRanges":[{"start":1,"end":2},{"start":5,"end":6}]}]}`, []request{{path: "a", ranges: [][2]int{{1, 2}, {5, 6}}}}, "lines 1-2, lines 5-6", 1},
		{"ranges as pairs", `{"files":[{"path":"a","line_ranges":[[3,4]]}]}`, []request{{path: "a", ranges: [][2]int{{3, 4}}}}, "lines 3-4", 3},
		{"ranges as text", `{"path":"a","line_ranges":["3 - 4","7-9"]}`, []request{{path: "a", ranges: [][2]int{{3, 4}, {7, 9}}}}, "lines 3-4, lines 7-9", 3},
		{"start and end", `{"path":"a","start_line":3,"end_line":"4"}`, []request{{path: "a", ranges: [][2]int{{3, 4}}}}, "lines 3-4", 3},
		{"only a start", `{"path":"a","start_line":3}`, []request{{path: "a", offset: 3}}, "lines 3-2002", 3},
		{"elements", `{"args":"<file><path> a b </path><line_range>2-3</line_range><line_range>5 - 6</line_range></file>\n<file><path>c</path></file>"}`,
			[]request{{path: "a b", ranges: [][2]int{{2, 3}, {5, 6}}}, {path: "c"}}, "lines 2-3, lines 5-6", 2},
		{"nulls", `{"path":"a","mode":null,"offset":null,"limit":null,"indentation":null,"start_line":null}`, []request{{path: "a"}}, "", 0},
		{"an unknown mode", `{"path":"a","mode":"whole"}`, []request{{path: "a"}}, "", 0},
	} {
		got, err := readRequests(tool.Input{Tool: "read_file", Object: []byte(tt.in)})
		if err != nil {
			t.Errorf("%s: got %v, want no error", tt.name, err)
			continue
		}
		for i := range tt.want {
			tt.want[i] = def(tt.want[i])
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(request{}, indentOptions{})); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", tt.name, d)
		}
		if got[0].snippet() != tt.snippet || got[0].first() != tt.first {
			t.Errorf("%s: shown as %q at %d", tt.name, got[0].snippet(), got[0].first())
		}
	}
}

func TestRequestsThatAreMistakes(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                                                `"path" is missing`,
		`{"path":""}`:                                       `"path" is empty`,
		`{"path":"a","offset":0}`:                           "count from 1",
		`{"path":"a","limit":-1}`:                           "count from 1",
		`{"path":"a","offset":"x"}`:                         `"offset" must be a whole number, not x`,
		`{"path":"a","offset":1e300}`:                       "must be a whole number",
		`{"path":"a","offset":[1]}`:                         "must be a whole number",
		`{"files":[]}`:                                      `"files" names no file`,
		`{"files":[7]}`:                                     `must be an object with a "path"`,
		`{"files":[{"p":"a"}]}`:                             `"path" is missing`,
		`{"args":"no elements"}`:                            `"args" names no file`,
		`{"args":"<file><path></path></file>"}`:             `"args" names no file`,
		`{"path":"a","line_ranges":[[4,3]]}`:                "the line range 4-3 of a is not one",
		`{"path":"a","line_ranges":[[0,3]]}`:                "the line range 0-3 of a is not one",
		`{"path":"a","line_ranges":["x"]}`:                  "is not one",
		`{"path":"a","start_line":9,"end_line":3}`:          "the line range 9-3 of a is not one",
		`{"path":"a","start_line":"x"}`:                     `"start_line" must be a whole number`,
		`{"path":"a","start_line":3,"end_line":{}}`:         `"end_line" must be a whole number`,
		`{"path":"a","mode":"indentation","max_levels":-1}`: "cannot be negative",
		`{"path":"a","mode":"indentation","indentation":{"include_header":"maybe"}}`: `"include_header" must be true or false`,
		`{"path":"a","mode":"indentation","indentation":{"anchor_line":"x"}}`:        `"anchor_line" must be a whole number`,
	} {
		_, err := readRequests(tool.Input{Tool: "read_file", Object: []byte(in)})
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Tool != "read_file" || !strings.Contains(wrong.Reason, want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func FuzzRequests(f *testing.F) {
	f.Add(`{"files":[{"path":"a","lineRanges":[{"start":1}]},"b"]}`)
	f.Add(`{"args":"<file><path>a</path><line_range>1-</line_range></file>"}`)
	f.Add(`{"path":"a","mode":"indentation","indentation":{"anchor_line":1e9}}`)
	f.Fuzz(func(t *testing.T, in string) {
		parsed, err := tool.ReadInput("read_file", json.RawMessage(in))
		if err != nil {
			return
		}
		reqs, err := readRequests(parsed)
		if err == nil && len(reqs) == 0 {
			t.Errorf("%s asks for nothing", in)
		}
		for _, r := range reqs {
			if err == nil && (r.offset < 1 && !r.indentation || r.limit < 1) {
				t.Errorf("%s: got %+v, want an error or ((r.offset >= 1 or r.indentation) and r.limit >= 1)", in, r)
			}
		}
	})
}

// The file is judged again when it is read: rules and links may be other ones.
func TestReadIsJudgedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		meddle func(root string) error
		want   string
	}{
		"hidden since": {func(root string) error { return os.WriteFile(filepath.Join(root, ".rooignore"), []byte("f\n"), 0o600) }, "access_denied"},
		"a link out": {func(root string) error {
			return errors.Join(os.Remove(filepath.Join(root, "f")), os.Symlink("../outside", filepath.Join(root, "f")))
		}, "now leads out of the workspace"},
		"gone": {func(root string) error { return os.Remove(filepath.Join(root, "f")) }, "f does not exist"},
		"a folder now": {func(root string) error {
			return errors.Join(os.Remove(filepath.Join(root, "f")), os.Mkdir(filepath.Join(root, "f"), 0o700))
		}, "f is not a file"},
		"other content": {func(root string) error { return os.WriteFile(filepath.Join(root, "f"), []byte("new"), 0o600) }, "1 | new"},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := sandbox(t, "f", "secret\n")
			fixture.WriteFile(t, filepath.Join(root, "..", "outside"), "SECRET\n")
			p := plan(t, env, ReadFile(), call("path", "f"))
			if err := tt.meddle(root); err != nil {
				t.Fatal(err)
			}
			res, err := p.Run(context.Background(), nil)
			if err != nil || !strings.Contains(res.Text, tt.want) || strings.Contains(strings.ToLower(res.Text), "secret") {
				t.Errorf("got %+v, %v, want no error and strings.Contains(res.Text, tt.want) and not strings.Contains(strings.ToLower(res.Text), \"secret\")",
					res, err)
			}
		})
	}
}

func ExampleReadFile() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "f"), []byte("one\ntwo\nthree"), 0o600)
	ws, err := workspace.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	p, err := ReadFile().Plan(ctx, tool.Env{Workspace: ws}, []byte(`{"path":"f","offset":2,"limit":2}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Run(ctx, nil)
	fmt.Println(res.Text, err)
	// Output:
	// File: f
	// 2 | two
	// 3 | three <nil>
}

// A disk that fails in the middle of a file is an error, whatever lines were asked for.
func TestReadErrorOfARange(t *testing.T) {
	broken := errors.New("broken")
	for _, r := range []request{{offset: 1, limit: 9}, {ranges: [][2]int{{1, 2}}}, {ranges: [][2]int{{1, 2}, {4, 5}}}, {indentation: true}} {
		if _, err := r.choose(t.Context(), iotest.ErrReader(broken)); !errors.Is(err, broken) {
			t.Errorf("got %+v: %v, want errors.Is(err, broken)", r, err)
		}
	}
}

// Each range costs a pass over the file: very many are refused, and several of a large file are given up when the run ends.
func TestManyRanges(t *testing.T) {
	env, _ := sandbox(t, "a", "b\n")
	many := json.RawMessage(`{"path":"a","line_ranges":[[1,1]` + strings.Repeat(",[1,1]", maxRanges) + `]}`)
	if _, res := run(t, env, ReadFile(), many); !res.IsError || !strings.Contains(res.Text, "101 line ranges of a are too many. Read at most 100") {
		t.Errorf("got %+v, want that the ranges are too many", res)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := request{ranges: [][2]int{{1, 1}, {2, 2}}}
	if got, err := r.choose(ctx, strings.NewReader("a\nb\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v, want %v", got, err, context.Canceled)
	}
}
