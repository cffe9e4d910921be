package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// exitLimit is how a run ends that used up its turns.
const exitLimit = 12

// cacheMark is where a request asks Anthropic to cache. Marks move with every turn and are no part of what is cached.
var cacheMark = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// caches measures how many bytes of each request begin the next one, unchanged: that is what a provider's prompt
// cache can read again. The task is stopped and resumed every few turns, so that restarts are among them.
func caches(ctx context.Context, o options) ([]row, error) {
	turns, every := 24, 6
	if o.quick {
		turns, every = 6, 3
	}
	var rows []row
	for _, p := range []struct{ name, model, path string }{
		{"anthropic", "claude-sonnet-5-5", ""}, {"openai", "gpt-5.1", ""}, {"openai-compatible", "some-model", "/v1"}, {"google", "gemini-2.5-pro", ""},
	} {
		r, err := cachedBy(ctx, o, p.name, p.model, p.path, turns, every)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func cachedBy(ctx context.Context, o options, provider, model, path string, turns, every int) (row, error) {
	s, err := llmtest.Serve("127.0.0.1:0")
	if err != nil {
		return row{}, fmt.Errorf("start a provider: %w", err)
	}
	defer s.Close()
	s.Answer(func(r llmtest.Request) llmtest.Reply {
		if n := r.Replies(); n < turns {
			return llmtest.Text("Reading.").AndCall(fmt.Sprintf("call_%d", n), "read_file", fmt.Sprintf(`{"path":"f%03d.txt"}`, n))
		}
		return llmtest.Call("call_end", "attempt_completion", `{"result":"All files were read."}`)
	})
	home := filepath.Join(o.dir, "cache-"+provider)
	ws := filepath.Join(home, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		return row{}, fmt.Errorf("make a workspace: %w", err)
	}
	for i := range turns {
		if err := os.WriteFile(filepath.Join(ws, fmt.Sprintf("f%03d.txt", i)), []byte(prose(i, fileText)), 0o600); err != nil {
			return row{}, fmt.Errorf("fill the workspace: %w", err)
		}
	}
	o.env = []string{"OPENAI_API_KEY=bench", "OPENAI_COMPATIBLE_API_KEY=bench", "GEMINI_API_KEY=bench"}
	flags := []string{
		"--no-input", "--approve", "all", "--provider", provider, "--base-url", s.URL + path, "--model", model,
		"--max-turns", fmt.Sprint(every), "-C", ws,
	}
	var restarts []int // the first request of each run but the first
	args := append(append([]string{"run"}, flags...), "Read the files.")
	for runs := 0; ; runs++ {
		_, err := start(ctx, o, home, 100*time.Millisecond, args...)
		var exit *exec.ExitError
		if err == nil {
			break
		}
		if !errors.As(err, &exit) || exit.ExitCode() != exitLimit || runs > turns {
			return row{}, err
		}
		restarts = append(restarts, len(s.Requests()))
		args = append(append([]string{"continue"}, flags...), "Go on.")
	}
	if v := s.Violations(); len(v) > 0 {
		return row{}, fmt.Errorf("the provider refused a request: %s", v[0])
	}
	var within, across shares
	requests := s.Requests()
	for i := 1; i < len(requests); i++ {
		share := prefixShare(requests[i-1].Body, requests[i].Body)
		if slices.Contains(restarts, i) {
			across = append(across, share)
		} else {
			within = append(within, share)
		}
	}
	if len(within) == 0 || len(across) == 0 {
		return row{}, fmt.Errorf("%d requests in %d runs: too few to compare", len(requests), len(restarts)+1)
	}
	return row{
		what:  fmt.Sprintf("c prompt cache, %s: shared beginning", provider),
		got:   fmt.Sprintf("turns >= %.2f%%", within.least()),
		floor: fmt.Sprintf("%d restarts >= %.2f%%", len(across), across.least()),
		ratio: "-", bar: "all but the end",
	}, nil
}

// shares are percentages.
type shares []float64

func (s shares) least() float64 { return slices.Min(s) }

// prefixShare is how much of a request's bytes begin the next one, in percent, without cache marks.
func prefixShare(before, next []byte) float64 {
	before, next = cacheMark.ReplaceAll(before, nil), cacheMark.ReplaceAll(next, nil)
	if len(before) == 0 {
		return 100
	}
	n := 0
	for n < len(before) && n < len(next) && before[n] == next[n] {
		n++
	}
	return 100 * float64(n) / float64(len(before))
}
