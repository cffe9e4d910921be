package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// The order of one turn with a tool: what leads to an effect is saved before it.
func TestIntentBeforeEffect(t *testing.T) {
	b := newBench(t, turn{text: "I act.", calls: []call{use("c1", "act", "one")}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	got := b.trace
	for i, e := range got {
		// Streamed text is checkpointed by the clock; here only the order counts.
		got[i] = strings.ReplaceAll(e, " message.text_saved", "")
	}
	wanted := []string{
		"commit task.created",
		"commit run.started +ui +api", "saved", // the words are acknowledged
		"commit +ui turn.started", "saved", "request 1",
		"commit +ui ~3 usage.changed turn.ended +api", // the reply, before any tool
		"commit +ui started:c1 tool.process", "saved", "run act one",
		"commit ok:c1 +api", // the outcome and the turn that tells the model, durable with the request
		"commit +ui turn.started", "saved", "request 2",
		"commit ~8 usage.changed turn.ended +api",
		"commit +ui +ui",
		"commit run.ended", "saved",
	}
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
}

// All results of a reply stand in one user turn, in the order of the calls.
func TestResultsComeInOneTurn(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "look", "a"), use("c2", "act", "b"), {"c3", "nothing", `{}`}, use("c4", "edit", "c")}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	checkHistories(t, b.disk.state)
	if d := cmp.Diff([]string{"c1 ok", "c2 ok", "c3 error", "c4 ok"}, outcomes(b.disk.state)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"look a", "act b", "edit c"}, b.ran); d != "" {
		t.Error(d)
	}
	if text := b.model.last(); !strings.Contains(text, `there is no tool named \"nothing\"`) && !strings.Contains(text, `no tool named`) {
		t.Error(text)
	}
}

func TestCallsThatTheModelGotWrong(t *testing.T) {
	for name, c := range map[string]struct {
		turn turn
		says string
	}{
		"unknown tool":       {turn{calls: []call{{"c1", "bad", `{}`}}}, "there is no tool named"},
		"missing parameter":  {turn{calls: []call{{"c1", "act", `{}`}}}, "is missing"},
		"input is not JSON":  {turn{calls: []call{{"c1", "act", `{}`}}, malformed: map[string]string{"c1": `{"what": "on`}}, "not complete JSON"},
		"cut by the limit":   {turn{calls: []call{{"c1", "act", `{}`}}, malformed: map[string]string{"c1": `{"what":"x`}, stop: "max_tokens"}, "not complete JSON"},
		"name with a path":   {turn{calls: []call{{"c1", "look_at", `{"what":"x"}`}}}, "there is no tool named"},
		"input of no object": {turn{calls: []call{{"c1", "look", `{"what":5}`}}}, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.turn, c.turn, c.turn, c.turn)
			want(t, b.start(agent.Input{Text: "go"}), "limit", "mistakes")
			checkHistories(t, b.disk.state)
			if len(b.ran) > 0 || !strings.Contains(b.model.last(), c.says) || len(b.model.requests) != 3 {
				t.Errorf("ran %q, %d requests, %s", b.ran, len(b.model.requests), b.model.last())
			}
		})
	}
}

// A turn that goes well in between ends a row of mistakes.
func TestMistakesInARowOnly(t *testing.T) {
	bad, good := turn{calls: []call{{"c1", "bad", `{}`}}}, turn{calls: []call{use("c2", "look", "a")}}
	b := newBench(t, bad, bad, good, turn{text: "hm"}, bad, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
}

func TestWhatAToolsEndBecomes(t *testing.T) {
	for name, c := range map[string]struct {
		result  tool.Result
		err     error
		outcome string
		says    []string
		isError bool
	}{
		"fine":           {tool.Result{Text: "fine"}, nil, "ok", []string{`"content":"fine"`}, false},
		"says nothing":   {tool.Result{}, nil, "ok", []string{"(tool did not return anything)"}, false},
		"failed":         {tool.Result{Text: "no such file", IsError: true}, nil, "error", []string{"no such file"}, true},
		"our trouble":    {tool.Result{}, errors.New("out of handles"), "error", []string{`\"status\":\"error\"`, "out of handles"}, true},
		"input in a run": {tool.Result{}, &tool.InputError{Tool: "act", Reason: "not like this"}, "error", []string{"not like this"}, true},
		"with a picture": {tool.Result{Text: "see", Images: imageList}, nil, "ok", []string{`{"type":"text","text":"see"},{"type":"image"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
			b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) { return c.result, c.err }
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			r := result(t, b.disk.state, "c1")
			isError, _ := esjson.GetBool([]byte(r), "is_error")
			if got := b.disk.state.Call("c1").Finished.Outcome; got != c.outcome || isError != c.isError {
				t.Errorf("got %s, %s, want got = c.outcome and isError = c.isError", got, r)
			}
			for _, part := range c.says {
				if !strings.Contains(r, part) {
					t.Errorf("%q is not in %s", part, r)
				}
			}
		})
	}
}

// A tool that had done all of its work when the cancel came has its result; one that
// was stopped says that it may have done a part.
func TestCancelDuringATool(t *testing.T) {
	for name, c := range map[string]struct {
		stopped       bool
		outcome, says string
	}{
		"it was through":  {false, "ok", "all done"},
		"it was stopped":  {true, "cancelled", "may have done part of its work"},
		"stopped, output": {true, "cancelled", "all done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "act", "x"), use("c2", "act", "y")}}, finish("done"))
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			b.tool("act").run = func(_ context.Context, _ tool.Output, what string) (tool.Result, error) {
				b.ran = append(b.ran, what)
				if what == "y" {
					return tool.Result{Text: "later"}, nil
				}
				cancel(errors.New("enough"))
				if c.stopped {
					return tool.Result{Text: "all done"}, context.Cause(ctx)
				}
				return tool.Result{Text: "all done"}, nil
			}
			want(t, b.startWith(ctx, agent.Input{Text: "go"}), "cancelled", "")
			if d := cmp.Diff([]string{"c1 " + c.outcome, "c2 open"}, outcomes(b.disk.state)); d != "" {
				t.Fatal(d)
			}
			if r := result(t, b.disk.state, "c1"); !strings.Contains(r, c.says) {
				t.Error(r)
			}
			// The call that had not begun runs when the task goes on.
			want(t, b.start(agent.Input{Yes: true}), "completed", "")
			if d := cmp.Diff([]string{"x", "y"}, b.ran); d != "" {
				t.Error(d)
			}
		})
	}
}

// A completion in one reply with a call that failed was written before the model
// could know.
func TestCompletionBesideOtherCalls(t *testing.T) {
	end := finish("one").calls[0]
	t.Run("all went well", func(t *testing.T) {
		b := newBench(t, turn{calls: []call{use("c1", "act", "x"), end}})
		out := b.start(agent.Input{Text: "go"})
		want(t, out, "completed", "")
		if out.Reason != "one" || len(b.model.requests) != 1 || !slices.Equal(b.ran, []string{"act x"}) {
			t.Errorf("%+v, %d requests, %q", out, len(b.model.requests), b.ran)
		}
	})
	t.Run("one failed", func(t *testing.T) {
		b := newBench(t, turn{calls: []call{{"c1", "act", `{}`}, end}}, finish("two"))
		out := b.start(agent.Input{Text: "go"})
		want(t, out, "completed", "")
		if out.Reason != "two" || !strings.Contains(b.model.last(), "the task was not completed") {
			t.Errorf(`got %+v, %s, want out.Reason = "two" and strings.Contains(b.model.last(), "the task was not completed")`,
				out, b.model.last())
		}
		if got := kinds(b.disk.state); count(got, "ask:completion_result") != 1 {
			t.Error(got)
		}
		checkHistories(t, b.disk.state)
	})
	t.Run("it came first", func(t *testing.T) {
		// What stands behind it is not run by the way: only when the task goes on.
		b := newBench(t, turn{calls: []call{end, use("c1", "act", "x")}}, finish("two"))
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if len(b.ran) > 0 {
			t.Error(b.ran)
		}
		want(t, b.start(agent.Input{Text: "more"}), "completed", "")
		if !slices.Equal(b.ran, []string{"act x"}) {
			t.Error(b.ran)
		}
		checkHistories(t, b.disk.state)
	})
}

// Calls that a provider gives one id, or none, are told apart before they are
// stored, so each has its own outcome.
func TestRepeatedIDs(t *testing.T) {
	same := turn{calls: []call{use("call_0", "act", "a"), use("call_0", "act", "b"), use("", "act", "c")}}
	again := turn{calls: []call{use("call_0", "act", "d")}}
	b := newBench(t, same, again, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if d := cmp.Diff([]string{"act a", "act b", "act c", "act d"}, b.ran); d != "" {
		t.Error(d)
	}
	wanted := []string{"call_0 ok", "call_0_2 ok", "call_3 ok", "call_0_3 ok"}
	if d := cmp.Diff(wanted, outcomes(b.disk.state)); d != "" {
		t.Error(d)
	}
	checkHistories(t, b.disk.state)
	if !strings.Contains(b.model.last(), `"id":"call_0_3"`) {
		t.Error("what is sent is not what is stored")
	}
}

// Of two calls with one id, the one that was not JSON is the one that does not run.
func TestRepeatedIDOfAMalformedCall(t *testing.T) {
	b := newBench(t, turn{
		calls:     []call{use("x", "act", "a"), {"x", "act", `{}`}},
		malformed: map[string]string{"x": `{"what":`},
	}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if d := cmp.Diff([]string{"x ok", "x_2 error"}, outcomes(b.disk.state)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"act a"}, b.ran); d != "" {
		t.Error(d)
	}
}

// A history of another program may use an id twice. The second call is not run and
// the task does not hang on it: the model is told.
func TestRepeatedIDsOfAnAdoptedHistory(t *testing.T) {
	for name, last := range map[string]string{
		"only the repeated call": `[{"type":"tool_use","id":"x","name":"act","input":{"what":"b"}}]`,
		"with another one":       `[{"type":"tool_use","id":"x","name":"act","input":{"what":"b"}},{"type":"tool_use","id":"y","name":"look","input":{"what":"c"}}]`,
		"twice in one reply":     `[{"type":"tool_use","id":"y","name":"look","input":{"what":"c"}},{"type":"tool_use","id":"y","name":"look","input":{"what":"c"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i, raw := range []string{
				`{"role":"user","content":"go"}`,
				`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"act","input":{"what":"a"}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"did a"}]}`,
				`{"role":"assistant","content":` + last + `}`,
			} {
				b.must(b.disk.Commit(context.Background(), task.MessageAdded{History: task.API, Message: uint64(i + 1), Body: task.Body{Raw: []byte(raw)}}))
			}
			want(t, b.start(agent.Input{Yes: true}), "completed", "")
			if slices.Contains(b.ran, "act b") || count(b.ran, "look c") > 1 {
				t.Error(b.ran)
			}
		})
	}
}

const secret = "s3cret-0123456789-abcdef"

// Output of a command is shown as it comes, with the row of its own that Roo gives it.
func TestCommandOutput(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
	b.agent.Host.Masks = redact.New(redact.Known{Kind: "test", Value: secret})
	b.tool("act").run = func(_ context.Context, out tool.Output, _ string) (tool.Result, error) {
		out.Started(tool.Process{PGID: 77, Started: 5, Boot: "b", Mark: "m"})
		for _, piece := range []string{"one ", "tw", "o " + secret[:7], secret[7:] + " \xc3", "\xbc ", strings.Repeat("x", 9000), " end"} {
			if _, err := out.Write([]byte(piece)); err != nil {
				return tool.Result{}, err
			}
		}
		return tool.Result{Text: "one two " + secret}, nil
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	s := b.disk.state
	wanted := "one two [REDACTED:test] ü " + strings.Repeat("x", 9000) + " end"
	if !shows(s, wanted) || strings.Contains(history(s), secret) {
		t.Errorf("rows %v, %s", kinds(s), history(s))
	}
	got := ""
	for _, d := range b.deltas {
		if d.Call == "c1" && d.Type == "message.delta" {
			if d.Offset != len(got) {
				t.Errorf("a piece at %d after %d bytes", d.Offset, len(got))
			}
			got += d.Text
		}
	}
	if got != wanted {
		t.Errorf("what was streamed is not what is kept: %d bytes, %d", len(got), len(wanted))
	}
	if p := s.Call("c1").Process; p == nil || p.PGID != 77 {
		t.Errorf("process %+v", p)
	}
	if k := strings.Join(kinds(s), " "); !strings.Contains(k, "ask:command ask:command_output say:command_output") {
		t.Error(k)
	}
}

// TestCommandOutputHidesSecretsOfSeveralWords: a secret of several words comes in pieces, and no piece of it is shown.
func TestCommandOutputHidesSecretsOfSeveralWords(t *testing.T) {
	key := strings.Repeat("MIIEpAIBAAKCAQEA7x9Kq2Vw5Tz8Yb1Nc4Md6Pf3Rg0Sh/Jk+LmQaWeXrUiOpEtY\n", 3)
	b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
	b.agent.Host.Masks = redact.New()
	b.tool("act").run = func(_ context.Context, out tool.Output, _ string) (tool.Result, error) {
		text := "a -----BEGIN RSA PRIVATE KEY-----\n" + key + "-----END RSA PRIVATE KEY-----\nAuthorization: Bearer q7Zx2Vw5Tz8Yb1Nc4Md6Pf3Rg0Sh b\n"
		for piece := range strings.SplitAfterSeq(text, " ") {
			for line := range strings.SplitAfterSeq(piece, "\n") {
				if _, err := out.Write([]byte(line)); err != nil {
					return tool.Result{}, err
				}
			}
		}
		return tool.Result{Text: "shown"}, nil
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	got := ""
	for _, d := range b.deltas {
		if d.Call == "c1" && d.Type == "message.delta" {
			got += d.Text
		}
	}
	if wanted := "a [REDACTED:private-key]\nAuthorization: Bearer [REDACTED:bearer-token] b\n"; got != wanted || !shows(b.disk.state, wanted) {
		t.Errorf("got %q, want %q, and a row that has it", got, wanted)
	}
}

// A row keeps so much of what a command prints; the rest is in the whole output.
func TestCommandOutputFloods(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
	spool := filepath.Join(t.TempDir(), "out")
	b.must(os.WriteFile(spool, []byte("everything"), 0o600))
	b.tool("act").run = func(_ context.Context, out tool.Output, _ string) (tool.Result, error) {
		for range 200 {
			if _, err := fmt.Fprintln(out, strings.Repeat("ü", 1000)); err != nil {
				return tool.Result{}, err
			}
		}
		return tool.Result{Text: "much", Full: &tool.Spool{Path: spool, Size: 10}}, nil
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	var row *task.Message
	for _, m := range b.disk.state.UI() {
		if m.Kind() == "say:command_output" {
			row = m
		}
	}
	if n := len(row.Text()); n < 100_000 || n > 101_000 || !strings.HasSuffix(row.Text(), "the rest is in the full output ...]") {
		t.Errorf("the row has %d bytes and ends %q", n, row.Text()[n-50:])
	}
	f := b.disk.state.Call("c1").Finished
	if string(b.disk.blobs[f.Output]) != "everything" || f.Size != 10 || !strings.HasPrefix(f.Artifact, "cmd-") {
		t.Errorf(`got %+v, want string(b.disk.blobs[f.Output]) = "everything" and f.Size = 10 and strings.HasPrefix(f.Artifact, "cmd-")`,
			f)
	}
}

// What is kept of a command's output is masked like what is shown of it: the model
// can read it again.
func TestTheWholeOutputIsMasked(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
	b.agent.Host.Masks = redact.New(redact.Known{Kind: "test", Value: secret})
	path := filepath.Join(t.TempDir(), "out")
	b.must(os.WriteFile(path, []byte(strings.Repeat("line\n", 5000)+"key="+secret+"\nend"), 0o600))
	b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) {
		return tool.Result{Text: "much", Full: &tool.Spool{Path: path}}, nil
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	f := b.disk.state.Call("c1").Finished
	kept := string(b.disk.blobs[f.Output])
	if strings.Contains(kept, secret) || !strings.HasSuffix(kept, "line\nkey=[REDACTED:test]\nend") || f.Size != int64(len(kept)) {
		t.Errorf("%d bytes, %d recorded: ...%s", len(kept), f.Size, kept[max(0, len(kept)-60):])
	}
	b.agent.Host.Masks = nil
}

// A disk that refuses the whole output holds the run; the outcome is not lost for it.
func TestWholeOutputIsKeptWhenTheDiskTakesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"full for a while": {fmt.Errorf("write: %w", journal.ErrNotSaved), ""},
		"gone":             {errors.New("no such file"), "could not be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
				spool := filepath.Join(t.TempDir(), "out")
				b.must(os.WriteFile(spool, []byte("everything"), 0o600))
				left := 2
				b.disk.refuse = func(op string) error {
					if op == "blob" && left > 0 {
						left--
						return c.err
					}
					return nil
				}
				b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) {
					return tool.Result{Text: "much", Full: &tool.Spool{Path: spool}}, nil
				}
				want(t, b.start(agent.Input{Text: "go"}), "completed", "")
				f := b.disk.state.Call("c1").Finished
				if f.Outcome != "ok" || (f.Output == "") != (c.says != "") || !strings.Contains(result(t, b.disk.state, "c1"), c.says) {
					t.Errorf(`got %+v %s, want f.Outcome = "ok" and (f.Output == "") = (c.says != "") and strings.Contains(result(t, b.disk.state, "c1"), c.says)`,
						f, result(t, b.disk.state, "c1"))
				}
			})
		})
	}
}

// What a tool learned of files goes into the log with its outcome.
func TestFileRecords(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "edit", "a.go")}}, finish("done"))
	b.tool("edit").ask = func(a *tool.Ask) { a.Before = map[string]string{"a.go": "old"} }
	b.tool("edit").run = func(context.Context, tool.Output, string) (tool.Result, error) {
		if got := b.disk.state.Call("c1").Before["a.go"]; got != "old" {
			t.Errorf("before the write the log says %q of the file", got)
		}
		return tool.Result{Text: "ok", Files: []tool.FileTouch{{FileState: workspace.FileState{Path: "a.go", Hash: "new", Size: 3}, Source: "roo_edited"}}}, nil
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if files := b.disk.state.Files; len(files) != 1 || files[0].Path != "a.go" {
		t.Errorf("got %+v, want len(files) = 1 and files[0].Path = \"a.go\"", files)
	}
}

// Policy: what is denied does not run, and the model is told by which rule.
func TestDeniedByPolicy(t *testing.T) {
	push := turn{calls: []call{use("c1", "act", "git push")}}
	b := newBench(t, push, turn{calls: []call{use("c2", "look", "a"), use("c3", "act", "git push")}}, push, push, push, push)
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeAll, Deny: []string{"git push"}}
	out := b.start(agent.Input{Text: "go"})
	// A reply that also does something else begins the row of refusals anew.
	want(t, out, "denied", "policy")
	if len(b.model.requests) != 5 || !slices.Equal(b.ran, []string{"look a"}) {
		t.Errorf("%d requests, ran %q", len(b.model.requests), b.ran)
	}
	f := b.disk.state.Call("c1").Finished
	if f.Approval.State != "denied" || f.Approval.By != "policy" || f.Approval.Rule != "git push" || !strings.Contains(result(t, b.disk.state, "c1"), `\"status\":\"denied\"`) {
		t.Errorf("%+v %s", f, result(t, b.disk.state, "c1"))
	}
	if run := b.disk.state.Run; run.Outcome != "denied" {
		t.Errorf("got %+v, want run.Outcome = \"denied\"", run)
	}
	checkHistories(t, b.disk.state)
}

// A word that is too long to be held back is shown in pieces, but never in half a
// character, and bytes that are no text become the sign for that.
func TestOutputWithoutBlanks(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"long":    {strings.Repeat("ü€😀", 4000), strings.Repeat("ü€😀", 4000)},
		"no text": {"a\xffb \xc3", "a\ufffdb \ufffd"},
	} {
		b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
		b.tool("act").run = func(_ context.Context, out tool.Output, _ string) (tool.Result, error) {
			for rest := []byte(c.in); len(rest) > 0; {
				n := min(len(rest), 1001)
				if _, err := out.Write(rest[:n]); err != nil {
					return tool.Result{}, err
				}
				rest = rest[n:]
			}
			return tool.Result{Text: "ok"}, nil
		}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for _, m := range b.disk.state.UI() {
			if m.Kind() == "say:command_output" && m.Text() != c.out {
				t.Errorf("%s: %d bytes became %d: %.40q", name, len(c.in), len(m.Text()), m.Text())
			}
		}
	}
}
