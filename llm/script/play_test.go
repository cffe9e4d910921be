package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/script"
)

// drive plays a script as the agent does: a failed attempt counts, a reply resets the
// count. It may lose all state between two requests, as a restart does.
func drive(t rapid.TB, s *script.Script, requests int, restart func() *script.Script) []string {
	t.Helper()
	var out []string
	replies, failures := 0, 0
	for range requests {
		chunks, err := play(restart(), llm.Request{Replies: replies, Failures: failures})
		var refused *llm.Error
		switch {
		case errors.As(err, &refused):
			failures++
			out = append(out, refused.Message)
		case err != nil:
			t.Fatalf("%v", err)
		default:
			replies, failures = replies+1, 0
			text := "completes"
			for _, c := range chunks {
				if d, ok := c.(llm.TextDelta); ok {
					text = d.Text
				}
			}
			out = append(out, text)
		}
	}
	return out
}

// Any script is played in its order, each failure as often as it is listed, and then
// completes for ever, also by a Script that is made again for each request.
func TestAScriptIsPlayedInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src strings.Builder
		var want []string
		for i := range rapid.IntRange(0, 6).Draw(t, "entries") {
			word := fmt.Sprintf("w%d", i)
			if rapid.Bool().Draw(t, "fails") {
				times := rapid.IntRange(0, 3).Draw(t, "times")
				fmt.Fprintf(&src, "- error: {status: 500, message: %s, times: %d}\n", word, times)
				for range times {
					want = append(want, word)
				}
				continue
			}
			fmt.Fprintf(&src, "- text: %s\n", word)
			want = append(want, word)
		}
		want = append(want, "completes", "completes")
		text := src.String()
		load := func() *script.Script {
			s, err := script.Parse([]byte(text))
			if err != nil {
				t.Fatalf("got %v\n%s, want no error", err, text)
			}
			return s
		}
		if d := cmp.Diff(want, drive(t, load(), len(want), load)); d != "" {
			t.Fatalf("got %s\n%s, want d = \"\"", d, text)
		}
	})
}

// value draws a JSON value that YAML reads as the same one.
func value(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return float64(rapid.Int32().Draw(t, "int"))
	case 3:
		return float64(rapid.IntRange(-1000, 1000).Draw(t, "eighths")) / 8
	case 4:
		return rapid.StringOf(rapid.SampledFrom([]rune("aé😀 :#-{}[],&*!|>'\"%@`\\~?0."))).Draw(t, "string")
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, value(t, depth-1))
		}
		return list
	}
	m := map[string]any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "len") {
		m[fmt.Sprintf("k%d", i)] = value(t, depth-1)
	}
	return m
}

// JSON is YAML: an input that is written as JSON reaches the tool as it is.
func TestInputsReachTheTool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]any{"v": value(t, 3)}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		s, err := script.Parse([]byte(`- tools: [{"name": "f", "input": ` + string(raw) + `}]`))
		if err != nil {
			t.Fatalf("got %v\n%s, want no error", err, raw)
		}
		chunks, err := play(s, llm.Request{})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		for _, c := range chunks {
			if d, ok := c.(llm.ToolDelta); ok {
				if err := json.Unmarshal([]byte(d.Input), &got); err != nil {
					t.Fatalf("%v: got %s, want no error", err, d.Input)
				}
			}
		}
		if d := cmp.Diff(in, got); d != "" {
			t.Fatalf("got %s\n%s, want d = \"\"", d, raw)
		}
	})
}

// How YAML's own spellings look to a tool.
func TestScalars(t *testing.T) {
	for in, want := range map[string]string{
		"{a: yes}": `{"a":"yes"}`, "{a: true}": `{"a":true}`, "{a: ~}": `{"a":null}`, "{a: }": `{"a":null}`, "{a: '1'}": `{"a":"1"}`,
		"{a: 1.0e3}": `{"a":1000}`, "{a: -0.5}": `{"a":-0.5}`, "{a: 18446744073709551615}": `{"a":18446744073709551615}`,
		"{1: x, true: y}": `{"1":"x","true":"y"}`, `{"a\tb": "\u00fc"}`: `{"a\tb":"ü"}`, "{b: 1, a: 2}": `{"b":1,"a":2}`, "{}": "{}", "": "{}",
		"{a: 2024-01-31}": `{"a":"2024-01-31"}`, "{a: [x, [y]]}": `{"a":["x",["y"]]}`,
	} {
		s, err := script.Parse([]byte("- tools:\n  - name: f\n    input: " + in + "\n"))
		if err != nil {
			t.Errorf("%s: got %v, want no error", in, err)
			continue
		}
		chunks, err := play(s, llm.Request{})
		if err != nil {
			t.Errorf("%s: got %v, want no error", in, err)
			continue
		}
		if got := chunks[0].(llm.ToolDelta).Input; got != want {
			t.Errorf("%s became %s, wanted %s", in, got, want)
		}
	}
}

// A block of text keeps its lines, as a person would write a file's content.
func TestBlockText(t *testing.T) {
	s := parse(t, "- tools:\n  - name: write_to_file\n    input:\n      path: a.txt\n      content: |\n        one\n          two\n\n        three\n")
	chunks, err := play(s, llm.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := chunks[0].(llm.ToolDelta).Input, `{"path":"a.txt","content":"one\n  two\n\nthree\n"}`; got != want {
		t.Errorf("got %s, wanted %s", got, want)
	}
}

func TestErrorsAreTheProvidersOwn(t *testing.T) {
	for src, want := range map[string]struct {
		kind  llm.Kind
		retry bool
	}{
		"{status: 401}":                              {llm.Auth, false},
		"{status: 400, message: bad}":                {llm.Invalid, false},
		"{status: 400, message: prompt is too long}": {llm.ContextOverflow, false},
		"{status: 413}":                              {llm.ContextOverflow, false},
		"{status: 429}":                              {llm.RateLimited, true},
		"{status: 500}":                              {llm.Server, true},
		"{status: 529}":                              {llm.Overloaded, true},
		"{message: the line broke}":                  {llm.Network, true},
		"{}":                                         {llm.Network, true},
	} {
		chunks, err := play(parse(t, "- error: "+src), llm.Request{})
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != want.kind || e.Retryable() != want.retry || e.Message == "" || len(chunks) != 0 {
			t.Errorf("%s: %v after %d chunks", src, err, len(chunks))
		}
	}
}

// A turn that expects something is not begun without it, whether it would reply or
// fail; a person who writes a script must see the mistake, not what follows from it.
func TestNothingIsPlayedWithoutWhatIsExpected(t *testing.T) {
	for _, src := range []string{"- {text: a b, expect: [needle]}", "- {error: {status: 500}, expect: [needle]}"} {
		for _, has := range []bool{true, false} {
			req := llm.Request{Tools: []llm.ToolSpec{{Name: "x", Description: "a haystack"}}}
			if has {
				req.Tools[0].Description += " with a needle"
			}
			chunks, err := play(parse(t, src), req)
			var e *llm.Error
			if missing := errors.As(err, &e) && e.Kind == llm.Script; missing == has || missing && len(chunks) > 0 {
				t.Errorf("%s, there %t: %v after %d chunks", src, has, err, len(chunks))
			}
		}
	}
}

// The delay comes before each chunk, and before a failure.
func TestDelays(t *testing.T) {
	for src, want := range map[string]time.Duration{
		"- {text: a b c, delay: 1s}": 3 * time.Second,
		"- {text: a b, reasoning: c, tools: [{name: f}, {name: g}], delay: 2s}": 10 * time.Second,
		"- {error: {status: 500}, delay: 1m}":                                   time.Minute,
		"- {text: a b c}":                                                       0,
		"- {delay: 1h}":                                                         0, // nothing to wait for
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, _ = play(parse(t, src), llm.Request{}) // what it plays is judged elsewhere
			if d := time.Since(begin); d != want {
				t.Errorf("%s took %s, wanted %s", src, d, want)
			}
		})
	}
}

func TestTheConsumerMayStopAnywhere(t *testing.T) {
	s := parse(t, "- {text: a b, reasoning: c, tools: [{name: f}], usage: {input: 1}}\n")
	all, err := play(s, llm.Request{})
	if err != nil || len(all) != 6 {
		t.Fatalf("%d chunks, %v", len(all), err)
	}
	for n := 1; n <= len(all); n++ {
		seen := 0
		for range s.Stream(context.Background(), llm.Request{}) {
			if seen++; seen == n {
				break
			}
		}
		if seen != n {
			t.Errorf("stopped after %d, seen %d", n, seen)
		}
	}
}

func TestACancelledScriptReturnsTheCause(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	seen := 0
	for _, err := range parse(t, "- text: a b c\n").Stream(ctx, llm.Request{}) {
		if err != nil {
			if !errors.Is(err, enough) {
				t.Errorf("got %v, want errors.Is(err, enough)", err)
			}
			break
		}
		if seen++; seen == 2 {
			cancel(enough)
		}
	}
	cancel(nil)
	if seen != 2 {
		t.Errorf("%d chunks came", seen)
	}
}

// One script serves many tasks at once.
func TestManyPlayers(t *testing.T) {
	s := parse(t, sample)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for r := range 3 {
				if chunks, err := play(s, llm.Request{Replies: r, Failures: 3}); err != nil || len(chunks) == 0 {
					t.Errorf("%d chunks, %v", len(chunks), err)
				}
			}
		})
	}
	wait.Wait()
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for name, text := range map[string]string{good: "- text: hi\n", bad: "- text: [\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := script.Load(good); err != nil || s.Turns() != 1 || s.Name() != "script" {
		t.Errorf("got %v, %v, want no error and s.Turns() = 1 and s.Name() = \"script\"", s, err)
	}
	if _, err := script.Load(bad); !errors.Is(err, script.ErrScript) || !strings.Contains(err.Error(), bad) {
		t.Errorf("a broken script: %v", err)
	}
	if _, err := script.Load(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("no script: %v", err)
	}
	if _, err := script.Load(dir); err == nil {
		t.Error("a folder is no script")
	}
	if _, err := script.Parse([]byte("- text: \"a\x00b\"\n")); !errors.Is(err, script.ErrScript) {
		t.Errorf("a NUL byte: %v", err)
	}
}
