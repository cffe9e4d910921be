package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/view"
)

// typist types lines when it is told to, as a person does.
type typist struct {
	p   *Prompter
	in  *io.PipeWriter
	out *strings.Builder
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	var out strings.Builder
	return &typist{NewPrompter(New(&out, Options{}), r), w, &out}
}

// A prompt that ended with its context leaves the next line to the next prompt:
// what a person types is an answer to what stands on the screen.
func TestLineAfterACancelledPrompt(t *testing.T) {
	t.Parallel()
	ty := newTypist(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the run was cancelled")
	time.AfterFunc(5*time.Millisecond, func() { cancel(stopped) })
	if _, err := ty.p.Ask(ctx, api.QuestionOpened{Kind: "approval", Text: "write a"}); !errors.Is(err, stopped) {
		t.Fatalf("err %v", err)
	}
	go func() { _, _ = io.WriteString(ty.in, "the second\n") }()
	got, err := ty.p.Ask(t.Context(), api.QuestionOpened{Kind: "followup", Text: "which?"})
	if diff := cmp.Diff(Reply{Text: "the second"}, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	if out := ty.out.String(); !strings.Contains(out, "q stop > \n? which?") {
		t.Errorf("the cancelled prompt's line is not ended:\n%s", out)
	}
}

// One prompt after the other reads one line each, whatever came in one piece.
func TestPromptsReadOneLineEach(t *testing.T) {
	t.Parallel()
	ty := newTypist(t)
	go func() { _, _ = io.WriteString(ty.in, "one\r\ntwo\nthree") }()
	for _, want := range []string{"one", "two"} {
		if got, err := ty.p.Read(t.Context(), "> "); err != nil || got != want {
			t.Fatalf("got %q %v, want no error and got = %v", got, err, want)
		}
	}
	go ty.in.Close()
	if got, err := ty.p.Read(t.Context(), "> "); err != nil || got != "three" {
		t.Fatalf("the last line without its end: %q %v", got, err)
	}
	for range 2 {
		if _, err := ty.p.Read(t.Context(), "> "); !errors.Is(err, ErrNoInput) {
			t.Fatalf("after the end: %v", err)
		}
	}
}

// A prompt does not run into text that is being streamed.
func TestPromptStartsOnALineOfItsOwn(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := New(&out, Options{Live: true})
	show(d, "message.added", `{"history":"ui","message":5,"content":{"type":"say","say":"text","text":""}}`)
	show(d, "message.delta", `{"message":5,"offset":0,"text":"I would like to"}`)
	p := NewPrompter(d, strings.NewReader("q\n"))
	if _, err := p.Ask(t.Context(), api.QuestionOpened{Kind: "approval", Text: "write a"}); err != nil {
		t.Fatal(err)
	}
	if want := "I would like to\n? write a\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %q, want strings.HasPrefix(out.String(), want)", out.String())
	}
}

// Only the letters and their words approve: no other line a person may type, and
// no line at all, ever does.
func TestNothingElseApproves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.OneOf(
			hostile(), rapid.SampledFrom([]string{"", " ", "ok", "yup", "yesno", "ya", "sure", "d", "always?", "1", "\x1b[A", "Y\u200b", "ｙ"}),
		), 0, 6).Draw(t, "lines")
		for i, l := range lines {
			lines[i] = strings.ReplaceAll(l, "\n", " ")
			switch word, _, _ := strings.Cut(strings.TrimSpace(lines[i]), " "); strings.ToLower(word) {
			case "y", "yes", "a", "always":
				lines[i] = "no way"
			}
		}
		p := NewPrompter(New(io.Discard, Options{}), strings.NewReader(strings.Join(lines, "\n")))
		kind := rapid.SampledFrom([]string{"approval", "damage"}).Draw(t, "kind")
		r, err := p.Ask(t.Context(), api.QuestionOpened{Kind: kind, Text: "rm -r x", Diff: "-a\n+b\n"})
		if r.Always || r.Approve != nil && *r.Approve {
			t.Fatalf("%q approved: %+v %v", lines, r, err)
		}
		if err == nil && r.Approve == nil && !r.Stop {
			t.Fatalf("%q: %+v is no answer", lines, r)
		}
	})
}

// What is asked about is shown whole, and harmless.
func TestHostileQuestions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := api.QuestionOpened{
			Kind: rapid.SampledFrom([]string{"approval", "damage", "followup", "resume"}).Draw(t, "kind"),
			Text: hostile().Draw(t, "text"), Diff: hostile().Draw(t, "diff"),
			Choices: rapid.SliceOfN(hostile(), 0, 3).Draw(t, "choices"),
		}
		var out strings.Builder
		p := NewPrompter(New(&out, Options{Width: 10}), strings.NewReader("d\nq\n"))
		if _, err := p.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		checkSafe(t, out.String())
		for _, word := range strings.FieldsFunc(Safe(q.Text), func(r rune) bool { return r == '\n' || r == ' ' || r == '\t' }) {
			if !strings.Contains(out.String(), word) {
				t.Fatalf("%q is not shown in %q", word, out.String())
			}
		}
	})
}

func TestDiffIsShown(t *testing.T) {
	t.Parallel()
	_, out, err := ask(t, api.QuestionOpened{Kind: "approval", Text: "write a", Diff: "@@ -1 +1 @@\n-old\r\n+new\u202e // check\u2066"}, "d\nn\n\n")
	if err != nil {
		t.Fatal(err)
	}
	// A character that hides or turns text is named, as on the page: the person approves what the file will hold.
	if n := strings.Count(out, "  -old\n  +new⟦U+202E⟧ // check⟦U+2066⟧\n"); n != 2 {
		t.Errorf("the diff is shown %d times:\n%s", n, out)
	}
	_, out, err = ask(t, api.QuestionOpened{Kind: "approval", Text: "echo x"}, "d\nq\n")
	if err != nil || !strings.Contains(out, "there is no diff: echo x") {
		t.Errorf("without a diff: %v\n%s", err, out)
	}
}

// A damaged log is a plain yes or no: nothing is allowed for ever by it.
func TestConsentToDamage(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, tt := range []struct {
		in   string
		want Reply
	}{
		{"y\n", Reply{Approve: &yes}}, {"\na\nYES\n", Reply{Approve: &yes}}, {"n\n", Reply{Approve: &no}}, {"go on\nq\n", Reply{Stop: true}},
	} {
		got, out, err := ask(t, api.QuestionOpened{Kind: "damage", Text: "The log is damaged. Go on?"}, tt.in)
		if d := cmp.Diff(tt.want, got); d != "" || err != nil || !strings.Contains(out, "? The log is damaged. Go on?") {
			t.Errorf("%q: got %v %s\n%s, want d = \"\" and no error and strings.Contains(out, \"? The log is damaged. Go on?\")",
				tt.in, err, d, out)
		}
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := New(&out, Options{Theme: theme.Basic()})
	d.Lines([]view.Line{{Style: view.Added, Text: "+a"}, {Style: view.Removed, Text: "-b"}, {Style: view.Plain, Text: "c"}, {Style: view.Bad, Text: ""}})
	d.Line(view.Head, "head")
	want := "\x1b[32m+a\x1b[0m\n\x1b[31m-b\x1b[0m\nc\n\n\x1b[1mhead\x1b[0m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Cutting and padding count columns: what is cut fits, and nothing that fits is
// touched.
func TestCutFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé日本🙂\u0301가ｗ—"))).Draw(t, "text")
		width := rapid.IntRange(1, 30).Draw(t, "width")
		cut := Cut(text, width)
		if Columns(cut) > width {
			t.Fatalf("%q takes %d columns of %d", cut, Columns(cut), width)
		}
		if Columns(text) <= width && cut != text {
			t.Fatalf("%q fits and became %q", text, cut)
		}
		if body, was := strings.CutSuffix(cut, "…"); was && !strings.HasPrefix(text, body) {
			t.Fatalf("%q is not the start of %q", body, text)
		}
		if padded := Pad(cut, width); Columns(padded) != max(width, Columns(cut)) || !strings.HasPrefix(padded, cut) {
			t.Fatalf("%q padded to %d is %q", cut, width, padded)
		}
		if Cut(text, 0) != text {
			t.Fatal("a width of 0 cuts")
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\nb\t c ": "a b c", "\x1b[31mred\x1b[0m": "red", "": "", " \n ": "",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := OneLineIndented("   a\nb"); got != "   a b" {
		t.Errorf("indented: %q", got)
	}
}

// Times are said in the unit in which people would say them, and never round up
// into the next.
func TestTimesAtTheirBounds(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		d             time.Duration
		duration, age string
	}{
		{0, "0ms", "0s"}, {999 * time.Millisecond, "999ms", "0s"}, {time.Second, "1.0s", "1s"}, {59 * time.Second, "59.0s", "59s"},
		{time.Minute, "1m00s", "1m"}, {time.Hour - time.Second, "59m59s", "59m"}, {time.Hour, "1h00m", "1h"}, {day - time.Minute, "23h59m", "23h"},
		{day, "24h00m", "1d"}, {14*day - time.Hour, "335h00m", "13d"}, {14 * day, "336h00m", "2w"}, {365 * day, "8760h00m", "1y"},
	} {
		if got := Duration(c.d); got != c.duration {
			t.Errorf("Duration(%v) = %q, want %q", c.d, got, c.duration)
		}
		if got := Age(c.d); got != c.age {
			t.Errorf("Age(%v) = %q, want %q", c.d, got, c.age)
		}
	}
	if got := Age(-time.Hour); got != "now" {
		t.Errorf("a clock that went back: %q", got)
	}
}

func ExampleDisplay() {
	var out strings.Builder
	d := New(&out, Options{})
	d.Show("message.added", []byte(`{"history":"ui","message":2,"content":{"type":"say","say":"text","text":""}}`))
	d.Show("message.delta", []byte(`{"message":2,"offset":0,"text":"Looking."}`))
	d.Show("tool.finished", []byte(`{"name":"list_files","outcome":"ok","result":{"content":"a\nb\n"}}`))
	d.Flush()
	fmt.Print(out.String())
	// Output:
	// Looking.
	// ✓ list_files · 2 lines
}
