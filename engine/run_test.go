package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

func (b *bench) runScript(script string, change ...func(*engine.Request)) (*engine.Run, engine.Outcome, []events.Event) {
	b.t.Helper()
	r := engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(script), Approve: "all"}}
	for _, f := range change {
		f(&r)
	}
	return b.run(r)
}

func kinds(s *task.State) (out []string) {
	for _, m := range s.UI() {
		out = append(out, m.Kind())
	}
	return out
}

func ofType(events []events.Event, typ string) (out []string) {
	for _, e := range events {
		if e.Type == typ {
			out = append(out, string(e.Data))
		}
	}
	return out
}

func wantOutcome(t *testing.T, o engine.Outcome, state, code string) {
	t.Helper()
	if o.State != state || code != "" && o.Code != code {
		t.Fatalf("outcome %+v, want %s %s", o, state, code)
	}
}

// checkHistory holds every history to what a provider accepts: each reply's calls
// are answered, in order, in the one message after it.
func checkHistory(t *testing.T, s *task.State, mayEndOpen bool) {
	t.Helper()
	var open []string
	for i, m := range s.API() {
		use := regexp.MustCompile(`"type":"tool_use","id":"([^"]*)"`).FindAllStringSubmatch(string(m.Raw()), -1)
		res := regexp.MustCompile(`"type":"tool_result","tool_use_id":"([^"]*)"`).FindAllStringSubmatch(string(m.Raw()), -1)
		var got []string
		for _, r := range res {
			got = append(got, r[1])
		}
		if !slices.Equal(open, got) {
			t.Errorf("message %d answers %v, want %v", i, got, open)
		}
		open = nil
		for _, u := range use {
			open = append(open, u[1])
		}
	}
	if len(open) > 0 && !mayEndOpen {
		t.Errorf("calls %v have no result", open)
	}
}

func TestRowsAreWrittenAsRooWritesThem(t *testing.T) {
	b := newBench(t)
	run, o, _ := b.runScript(writeAndFinish)
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	checkHistory(t, s, true)
	wantKinds := []string{
		"say:text", "say:api_req_started", "say:reasoning", "say:text", "ask:tool",
		"say:api_req_started", "say:text", "ask:tool", "ask:command", "ask:command_output", "say:command_output",
		"say:api_req_started", "say:completion_result", "ask:completion_result",
	}
	if d := cmp.Diff(wantKinds, kinds(s)); d != "" {
		t.Error(d)
	}
	shapes := map[string]string{
		"say:text":              `^\{"ts":\d+,"type":"say","say":"text","text":".*?"(,"images":\[\]|,"partial":false)\}$`,
		"say:api_req_started":   `^\{"ts":\d+,"type":"say","say":"api_req_started","text":"\{\\"apiProtocol\\":\\"openai\\",\\"tokensIn\\":`,
		"ask:tool":              `^\{"ts":\d+,"type":"ask","ask":"tool","text":".*","partial":false,"isProtected":false,"isAnswered":true\}$`,
		"ask:completion_result": `^\{"ts":\d+,"type":"ask","ask":"completion_result","text":""\}$`,
	}
	last := int64(0)
	for _, m := range s.UI() {
		if shape := shapes[m.Kind()]; shape != "" && !regexp.MustCompile(shape).Match(m.Raw()) {
			t.Errorf("got %s, want shape = \"\" or regexp.MustCompile(shape).Match(m.Raw())", m.Raw())
		}
		if m.TS() < last || m.Partial() {
			t.Errorf("ts %d after %d, partial %t: %s", m.TS(), last, m.Partial(), m.Raw())
		}
		last = m.TS()
	}
}

func TestIntentIsOnDiskBeforeTheEffect(t *testing.T) {
	b := newBench(t)
	look := `cat ` + b.root + `/tasks/*/journal.jsonl | grep -c '{"type":"tool.started","call":"call_1_1"'
cat ` + b.root + `/tasks/*/journal.jsonl | grep -c '"raw":{"role":"assistant".*"id":"call_1_1"'
`
	if err := os.WriteFile(filepath.Join(b.workspace, "look.sh"), []byte(look), 0o600); err != nil {
		t.Fatal(err)
	}
	run, o, _ := b.runScript("- tools: [{name: execute_command, input: {command: sh look.sh}}]\n")
	wantOutcome(t, o, "completed", "")
	if got := string(b.state(run.TaskID).API()[2].Raw()); !strings.Contains(got, `1\n1`) {
		t.Fatalf("the log held neither call nor intent: %s", got)
	}
}

func TestCallsThatCannotRun(t *testing.T) {
	b := newBench(t)
	run, o, _ := b.runScript(`
- tools:
    - {name: no_such_tool, input: {}}
    - {name: read_file, input: {nonsense: 1}}
    - {name: execute_command, input: {command: "rm -rf x"}}
    - {name: execute_command, input: {command: "echo fine"}}
`, func(r *engine.Request) { r.Deny = []string{"rm"} })
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	checkHistory(t, s, true)
	var got []string
	for _, c := range s.Calls()[:4] {
		got = append(got, c.Finished.Outcome)
	}
	if d := cmp.Diff([]string{"error", "error", "denied", "ok"}, got); d != "" {
		t.Fatal(d)
	}
}

func TestThreeMistakesEndTheRun(t *testing.T) {
	b := newBench(t)
	_, o, _ := b.runScript("- text: a\n- text: b\n- text: c\n- text: d\n")
	wantOutcome(t, o, "limit", "mistakes")
}

func TestWaitingWithoutAPerson(t *testing.T) {
	const ask = `
- tools:
    - {name: execute_command, input: {command: "echo ran >> ran.txt"}}
    - {name: execute_command, input: {command: "echo two >> ran.txt"}}
`
	for _, c := range []struct {
		name, text string
		yes        bool
		outcomes   []string
		in         string
	}{
		{"yes", "yes", false, []string{"ok"}, ""},
		{"flag", "", true, []string{"ok"}, ""},
		{"no", "no", false, []string{"denied", "denied"}, "denied"},
		{"words", "use make instead", false, []string{"denied", "denied"}, "use make instead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			run, o, events := b.runScript(ask, func(r *engine.Request) { r.Approve = "ask" })
			wantOutcome(t, o, "waiting", "")
			if len(ofType(events, "question.opened")) != 1 || events[len(events)-1].Type != "run.waiting" {
				t.Fatalf("last event %s", events[len(events)-1].Data)
			}
			if _, err := os.Stat(filepath.Join(b.workspace, "ran.txt")); err == nil {
				t.Fatal("the command ran unasked")
			}
			b.run(engine.Request{Task: run.TaskID, Text: c.text, Yes: c.yes})
			s := b.state(run.TaskID)
			var got []string
			for _, call := range s.Calls() {
				if call.Finished != nil && call.Name == "execute_command" {
					got = append(got, call.Finished.Outcome)
				}
			}
			if d := cmp.Diff(c.outcomes, got); d != "" {
				t.Error(d)
			}
			if c.in != "" && !strings.Contains(string(s.API()[2].Raw()), c.in) {
				t.Errorf("the model was not told: %s", s.API()[2].Raw())
			}
		})
	}
}

func TestAnswersOfAPerson(t *testing.T) {
	b := newBench(t)
	yes := true
	run, err := b.engine.Start(context.Background(), engine.Request{
		Text: "go",
		Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Model: b.script(`
- tools:
    - {name: execute_command, input: {command: "echo one"}}
    - {name: execute_command, input: {command: "echo two"}}
- tools:
    - {name: ask_followup_question, input: {question: "which?", follow_up: [{text: "a", mode: null}]}}
`)},
		Interactive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for e := range run.Events(context.Background()) {
		if e.Type != "question.opened" {
			continue
		}
		asked++
		id := regexp.MustCompile(`"question":"(q\d+)"`).FindStringSubmatch(string(e.Data))[1]
		answer := engine.Answer{Approve: &yes, Always: true, By: "test"}
		if strings.Contains(string(e.Data), "followup") {
			answer = engine.Answer{Text: "the second", By: "test"}
		}
		for i := 0; ; i++ { // the event may come a moment before the question is listened for
			if err := run.Answer(id, answer); err == nil {
				break
			} else if i > 100 {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := run.Answer(id, answer); !errors.Is(err, engine.ErrNoQuestion) {
			t.Errorf("a second answer: %v", err)
		}
	}
	o, err := run.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	if asked != 2 || len(s.Settings.Allow) != 1 || !strings.Contains(string(s.API()[4].Raw()), "the second") {
		t.Fatalf("asked %d times, allow %v, %s", asked, s.Settings.Allow, s.API()[4].Raw())
	}
}

func TestCompletionThenMore(t *testing.T) {
	for _, r := range []engine.Request{{Text: "add a test"}, {Yes: true}} {
		b := newBench(t)
		run, o, _ := b.runScript("- tools: [{name: attempt_completion, input: {result: one}}]\n- tools: [{name: attempt_completion, input: {result: two}}]\n")
		wantOutcome(t, o, "completed", "")
		r.Task = run.TaskID
		_, o, _ = b.run(r)
		wantOutcome(t, o, "completed", "")
		s := b.state(run.TaskID)
		checkHistory(t, s, true)
		if o.Reason != "two" || !strings.Contains(string(s.API()[2].Raw()), r.Text) {
			t.Fatalf("got %+v %s, want o.Reason = \"two\" and strings.Contains(string(s.API()[2].Raw()), r.Text)",
				o, s.API()[2].Raw())
		}
	}
}

func TestCancel(t *testing.T) {
	nap := fmt.Sprintf("61.%06d", os.Getpid()) // nobody else's sleep
	for name, script := range map[string]string{
		"stream":  "- {text: a b c d e f g h i j k l m n o p q r s t, delay: 100ms}\n",
		"command": "- tools: [{name: execute_command, input: {command: \"echo begun; sleep " + nap + "\"}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			run, err := b.engine.Start(context.Background(), engine.Request{
				Text:   "go",
				Choice: setup.Choice{Provider: "script", Model: b.script(script), Approve: "all", Workspace: b.workspace},
			})
			if err != nil {
				t.Fatal(err)
			}
			for e := range run.Events(context.Background()) {
				if e.Type == "message.delta" {
					break
				}
			}
			begin := time.Now()
			run.Cancel()
			o, err := run.Wait(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, o, "cancelled", "")
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			s := b.state(run.TaskID)
			checkHistory(t, s, true)
			if s.Run.Outcome != "cancelled" {
				t.Errorf("run %+v", s.Run)
			}
			if left, _ := filepath.Glob("/proc/[0-9]*/cmdline"); name == "command" {
				for _, p := range left {
					if line, _ := os.ReadFile(p); strings.Contains(string(line), "sleep\x00"+nap) {
						t.Errorf("%s still runs", p)
					}
				}
			}
			_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true, Choice: setup.Choice{Provider: "script", Model: b.script("- text: x\n- text: y\n")}})
			if o.State == "failed" {
				t.Fatalf("resume: %+v", o)
			}
			checkHistory(t, b.state(run.TaskID), true)
		})
	}
}

func TestLimits(t *testing.T) {
	const slow = "- tools: [{name: execute_command, input: {command: \"sleep 200\"}}]\n"
	for _, c := range []struct {
		name, script, code string
		limits             api.RunLimits
	}{
		{"turns", writeAndFinish, "turns", api.RunLimits{MaxTurns: 1}},
		{"total", slow, "timeout", api.RunLimits{TotalTimeoutMS: 300}},
		{"idle", slow, "timeout", api.RunLimits{IdleTimeoutMS: 400}},
		{"stalled model", "- {text: a b, delay: 200s}\n", "timeout", api.RunLimits{IdleTimeoutMS: 400}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			begin := time.Now()
			run, o, _ := b.runScript(c.script, func(r *engine.Request) { r.Limits = &c.limits })
			wantOutcome(t, o, "limit", c.code)
			if took := time.Since(begin); took > 60*time.Second {
				t.Errorf("it took %s", took)
			}
			if s := b.state(run.TaskID); s.Run.Outcome != "limit" || s.Run.Code != c.code {
				t.Errorf("run %+v", s.Run)
			}
		})
	}
}

func TestIdleTimeDoesNotRunWhileSomethingHappens(t *testing.T) {
	b := newBench(t)
	// A busy machine may be silent for so long on its own account: it is given longer then.
	for idle := int64(2000); ; idle *= 4 {
		_, o, _ := b.runScript(fmt.Sprintf("- {text: a b c d e f g h, delay: %dms, tools: [{name: attempt_completion, input: {result: x}}]}\n", idle*3/20),
			func(r *engine.Request) { r.Limits = &api.RunLimits{IdleTimeoutMS: idle} })
		if o.State == "limit" && idle < 10_000 {
			continue
		}
		wantOutcome(t, o, "completed", "")
		return
	}
}

func TestScriptedFailures(t *testing.T) {
	b := newBench(t)
	run, o, _ := b.runScript("- {error: {status: 529, message: busy, times: 2}}\n- tools: [{name: attempt_completion, input: {result: done}}]\n")
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	if s.Turns != 3 || s.Replies != 1 || s.Failures != 0 || o.Reason != "done" {
		t.Fatalf("turns %d, replies %d, failures %d, %+v", s.Turns, s.Replies, s.Failures, o)
	}
	_, o, _ = b.runScript("- {error: {status: 401, message: no}}\n")
	wantOutcome(t, o, "failed", "auth")
}

func TestChangesAreSaidBeforeTheFirstRequest(t *testing.T) {
	b := newBench(t)
	run, _, _ := b.runScript(writeAndFinish)
	_, _, events := b.run(engine.Request{Task: run.TaskID, Text: "more", Choice: setup.Choice{Mode: "architect", Model: b.script(writeAndFinish)}})
	notes := strings.Join(ofType(events, "notice"), "\n")
	for _, say := range []string{"mode: code -> architect", "model: "} {
		if !strings.Contains(notes, say) {
			t.Errorf("%q is not in %s", say, notes)
		}
	}
}

func TestFullDiskHoldsTheRun(t *testing.T) {
	fs := faultfs.New()
	b := newBench(t)
	s, err := store.Open(store.Options{Root: b.root, State: b.root + ".state", Program: "test", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	b.store = s
	b.engine = engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	run, err := b.engine.Start(context.Background(), engine.Request{
		Text: "go",
		Choice: setup.Choice{Provider: "script", Approve: "all", Workspace: b.workspace, Model: b.script(`
- tools: [{name: execute_command, input: {command: "echo one; until [ -e go ]; do sleep 0.05; done"}}]
- tools: [{name: execute_command, input: {command: "echo two > two.txt"}}]
`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for e := range run.Events(context.Background()) {
		if e.Type == "tool.started" {
			break
		}
	}
	fs.Fail(faultfs.Ops("write sync", "journal.jsonl", syscall.ENOSPC))
	if err := os.WriteFile(filepath.Join(b.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // long enough for a tool to start that must not
	if _, err := os.Stat(filepath.Join(b.workspace, "two.txt")); err == nil {
		t.Fatal("a tool started that was not saved")
	}
	fs.Fail(nil)
	o, err := run.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, o, "completed", "")
	if _, err := os.Stat(filepath.Join(b.workspace, "two.txt")); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// newAPIBench is a bench that asks a Messages API on loopback.
func newAPIBench(t *testing.T, replies ...llmtest.Reply) (*bench, *llmtest.Server) {
	b, server := newBench(t), llmtest.New(t, replies...)
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{
		Provider: "anthropic", Model: "claude-sonnet-4-5",
		Keys: map[string]string{"anthropic": "sk-ant-test-0123456789abcdef"}, BaseURLs: map[string]string{"anthropic": server.URL},
	}})
	t.Cleanup(func() {
		_ = b.engine.Close(context.Background())
		http.DefaultClient.CloseIdleConnections()
	})
	return b, server
}

var done = llmtest.Call("toolu_done", "attempt_completion", `{"result":"ok"}`)

func TestProviderTroubles(t *testing.T) {
	for _, c := range []struct {
		name        string
		replies     []llmtest.Reply
		state, code string
		requests    int
	}{
		{"429", []llmtest.Reply{llmtest.Fail(429, "slow").After("retry-after", "1"), done}, "completed", "", 2},
		{"529", []llmtest.Reply{llmtest.Fail(529, "busy"), done}, "completed", "", 2},
		{"401", []llmtest.Reply{llmtest.Fail(401, "who")}, "failed", "auth", 1},
		{"400", []llmtest.Reply{llmtest.Fail(400, "bad")}, "failed", "provider", 1},
		{"too long", []llmtest.Reply{llmtest.Fail(400, "prompt is too long: 300000 tokens > 200000 maximum")}, "failed", "context", 1},
		{"cut", []llmtest.Reply{llmtest.Text("some words that are long enough").CutEvent(4), done}, "completed", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, server := newAPIBench(t, c.replies...)
			run, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all"}})
			wantOutcome(t, o, c.state, c.code)
			if n := len(server.Requests()); n != c.requests {
				t.Errorf("%d requests", n)
			}
			s := b.state(run.TaskID)
			rows := 0
			for _, k := range kinds(s) {
				if k == "say:api_req_started" {
					rows++
				}
			}
			if c.name == "cut" && (rows != 2 || s.Usage.Requests != 2) {
				t.Errorf("%d request rows, ledger %+v", rows, s.Usage)
			}
		})
	}
}

func TestSecretsAreMaskedBeforeBothHistories(t *testing.T) {
	const key = "sk-ant-test-0123456789abcdef"
	b, server := newAPIBench(t,
		llmtest.Call("toolu_1", "execute_command", `{"command":"printf sk-ant-test-; sleep 0.3; echo 0123456789abcdef"}`), done)
	run, o, events := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all"}})
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	for _, m := range append(slices.Clone(s.UI()), s.API()...) {
		if strings.Contains(string(m.Raw()), key) {
			t.Errorf("a history holds the key: %s", m.Raw())
		}
	}
	if strings.Contains(string(server.Requests()[1].Body), key) {
		t.Error("the key was sent")
	}
	for _, e := range events {
		if strings.Contains(string(e.Data), key) {
			t.Errorf("an event holds the key: %s", e.Data)
		}
	}
}

func TestMalformedCallsDoNotRun(t *testing.T) {
	bad := llmtest.Call("toolu_1", "list_files", `{}`)
	bad.InputPieces = []string{`{"path": "."`, `, "recur`}
	b, _ := newAPIBench(t, bad, done)
	run, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all"}})
	wantOutcome(t, o, "completed", "")
	c := b.state(run.TaskID).Call("toolu_1")
	result, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	if c.Started || c.Finished == nil || c.Finished.Outcome != "error" || !strings.Contains(string(result), "recur") {
		t.Fatalf(`got %+v, want not c.Started and c.Finished != nil and c.Finished.Outcome = "error" and strings.Contains(string(result), "recur")`,
			c)
	}
}

func TestReadersSeeTheSameBytes(t *testing.T) {
	b := newBench(t)
	run, _, first := b.runScript(writeAndFinish)
	durable := func(events []events.Event) (out []string) {
		for _, e := range events {
			if e.ID != "" {
				out = append(out, e.ID+" "+string(e.Data))
			}
		}
		return out
	}
	var second []events.Event
	for e := range run.Events(context.Background()) {
		second = append(second, e)
	}
	if d := cmp.Diff(durable(first), durable(second)); d != "" {
		t.Error(d)
	}
	seq := uint64(0)
	for _, e := range first {
		if e.ID == "" {
			continue
		}
		if e.Seq < seq {
			t.Fatalf("%d after %d", e.Seq, seq)
		}
		seq = e.Seq
	}
	if last := first[len(first)-1]; last.Type != "run.ended" {
		t.Errorf("the last event is %s", last.Data)
	}
}
