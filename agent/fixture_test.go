package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/workspace/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is one task, one model and the world that the tools change. It writes down
// the order in which things happen.
type bench struct {
	t       *testing.T
	disk    *disk
	model   *model
	tools   []tool.Tool
	ran     []string // what the tools did to the world, in order
	trace   []string
	hook    func(entry string) // called for each entry
	asked   []api.QuestionOpened
	notices []string
	deltas  []agent.Delta
	agent   *agent.Agent
	shown   *observer
	clock   int64
	runs    int
	percent int // Settings.Condense of each run
}

func newBench(t *testing.T, turns ...turn) *bench {
	t.Helper()
	b := &bench{t: t, clock: 1_776_200_000_000}
	b.disk = newDisk(b, nil)
	b.model = &model{b: b, turns: turns}
	b.tools = []tool.Tool{
		b.fake("look", tool.Read, tool.Again), b.fake("edit", tool.Write, tool.Inspect), b.fake("act", tool.Command, tool.Never),
		controltool.NewQuestion(), controltool.NewCompletion(),
	}
	b.must(b.disk.Commit(context.Background(), task.Created{Task: "t", CreatedAt: b.clock}))
	b.prepare()
	return b
}

// prepare makes the agent of the next run. Tests change its fields before start.
func (b *bench) prepare() *agent.Agent {
	b.runs++
	b.shown = &observer{
		live:   func(d agent.Delta) { b.deltas = append(b.deltas, d) },
		notice: func(s string) { b.notices = append(b.notices, s) },
		expect: func(string) {},
	}
	b.agent = &agent.Agent{
		Task: agent.Task{
			Journal:  b.disk,
			RunID:    fmt.Sprintf("run-%d", b.runs),
			Settings: b.disk.state.Settings,
			Policy:   approval.Policy{Mode: approval.ModeAll},
		},
		Model: agent.Model{Provider: b.model},
		Tools: agent.Tools{List: b.tools},
		User:  agent.User{Observer: b.shown},
		Host:  agent.Host{Now: func() int64 { b.clock++; return b.clock }},
	}
	b.agent.Task.Settings.Model, b.agent.Task.Settings.Condense = "a-model", b.percent
	return b.agent
}

// observer is an agent.Observer of functions.
type observer struct {
	live   func(agent.Delta)
	notice func(string)
	expect func(string)
}

func (o *observer) Accepted()          {}
func (o *observer) Expect(text string) { o.expect(text) }
func (o *observer) Live(d agent.Delta) { o.live(d) }
func (o *observer) Notice(text string) { o.notice(text) }

// setup is an agent.ModeSetup of functions; nil = the user set up nothing of that.
type setup struct {
	rules func(slug string) mode.Rules
	serve func(task.Settings) (agent.ModeModel, bool, error)
}

func (s setup) Rules(slug string) (r mode.Rules) {
	if s.rules == nil {
		return r
	}
	return s.rules(slug)
}

func (setup) Skills(string) (list []skill.Skill, notes []string) { return nil, nil }

func (s setup) ModelFor(t task.Settings) (agent.ModeModel, bool, error) {
	if s.serve == nil {
		return agent.ModeModel{}, false, nil
	}
	return s.serve(t)
}

// start runs what prepare made, and prepares the next run.
func (b *bench) start(in agent.Input) agent.Outcome {
	b.t.Helper()
	return b.startWith(context.Background(), in)
}

func (b *bench) startWith(ctx context.Context, in agent.Input) agent.Outcome {
	b.t.Helper()
	out := b.agent.Run(ctx, in)
	policy, asker, masks := b.agent.Task.Policy, b.agent.User.Asker, b.agent.Host.Masks
	b.prepare()
	b.agent.Task.Policy, b.agent.User.Asker, b.agent.Host.Masks = policy, asker, masks
	return out
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) note(format string, args ...any) {
	entry := fmt.Sprintf(format, args...)
	b.trace = append(b.trace, entry)
	if b.hook != nil {
		b.hook(entry)
	}
}

// want fails the test when the run ended in another way.
func want(t *testing.T, out agent.Outcome, state, code string) {
	t.Helper()
	if out.State != state || out.Code != code {
		t.Fatalf("the run ended as %q/%q (%s, %v), wanted %q/%q", out.State, out.Code, out.Reason, out.Err, state, code)
	}
}

// disk is a task in memory, with a place where it can refuse.
type disk struct {
	b       *bench
	state   *task.State
	commits []journal.Commit
	ranAt   []int // how much of the world was changed when a commit was made
	blobs   map[string][]byte
	refuse  func(op string) error // "commit", "barrier", "blob"
}

// newDisk holds the commits of a disk that was left behind.
func newDisk(b *bench, left []journal.Commit) *disk {
	d := &disk{b: b, blobs: map[string][]byte{}}
	d.state = task.New(d)
	for _, c := range left {
		if err := d.state.Apply(c); err != nil {
			b.t.Fatal(err)
		}
	}
	d.commits = slices.Clone(left)
	return d
}

func (d *disk) State() *task.State { return d.state }

func (d *disk) refused(op string) error {
	if d.refuse == nil {
		return nil
	}
	return d.refuse(op)
}

func (d *disk) Commit(_ context.Context, events ...task.Event) error {
	if err := d.refused("commit"); err != nil {
		return err
	}
	c := journal.Commit{Seq: d.state.Seq + 1, Epoch: 1, At: d.b.clock}
	var names []string
	for _, e := range events {
		raw, err := task.Encode(e)
		if err != nil {
			return err
		}
		c.Events = append(c.Events, raw)
		names = append(names, name(e))
	}
	d.commits, d.ranAt = append(d.commits, c), append(d.ranAt, len(d.b.ran))
	if err := d.state.Apply(c); err != nil {
		d.b.t.Errorf("a commit of the agent cannot be folded: %v", err)
		return err
	}
	d.b.note("commit %s", strings.Join(names, " "))
	return nil
}

// name is an event's type, with what tells events of that type apart.
func name(e task.Event) string {
	switch e := e.(type) {
	case task.MessageAdded:
		return "+" + string(e.History)
	case task.MessageChanged:
		return "~" + fmt.Sprint(e.Message)
	case task.ToolStarted:
		return "started:" + e.Call
	case task.ToolFinished:
		return e.Outcome + ":" + e.Call
	}
	return e.EventType()
}

func (d *disk) Held(context.Context) error { return nil }

func (d *disk) Barrier(context.Context) error {
	if err := d.refused("barrier"); err != nil {
		d.b.note("refused")
		return err
	}
	d.b.note("saved")
	return nil
}

func (d *disk) PutBlob(_ context.Context, data []byte) (string, error) {
	if err := d.refused("blob"); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	d.blobs[hex.EncodeToString(sum[:])] = data
	return hex.EncodeToString(sum[:]), nil
}

func (d *disk) TakeIn() error { return nil }

func (d *disk) Claim(input string) (task.InputQueued, bool) {
	for _, q := range d.state.Queue {
		if q.Input == input {
			if whole, err := q.Load(d); err == nil {
				q = whole
			}
			return q, true
		}
	}
	return task.InputQueued{}, false
}

func (d *disk) PutBlobFile(ctx context.Context, path string) (string, int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	hash, err := d.PutBlob(ctx, data)
	return hash, int64(len(data)), err
}

func (d *disk) Range(hash string, off, length int64) ([]byte, error) {
	data, ok := d.blobs[hash]
	if !ok {
		return nil, errors.New("no such blob")
	}
	if length < 0 {
		length = int64(len(data)) - off
	}
	return data[off : off+length], nil
}

// fake is a tool that writes down what it does.
type fake struct {
	b    *bench
	spec tool.Spec
	run  func(ctx context.Context, out tool.Output, input string) (tool.Result, error)
	ask  func(ask *tool.Ask)
}

func (b *bench) fake(name string, class tool.Class, replay tool.Replay) *fake {
	return &fake{b: b, spec: tool.Spec{Name: name, Class: class, Replay: replay, Schema: json.RawMessage(`{"type":"object"}`)}}
}

// tool finds a fake by name, to change what it does.
func (b *bench) tool(name string) *fake {
	for _, t := range b.tools {
		if f, ok := t.(*fake); ok && f.spec.Name == name {
			return f
		}
	}
	b.t.Fatalf("no tool %s", name)
	return nil
}

func (f *fake) Spec() tool.Spec { return f.spec }

func (f *fake) Plan(_ context.Context, _ tool.Env, input json.RawMessage) (tool.Plan, error) {
	what, ok := esjson.GetString(input, "what")
	if !ok {
		return nil, &tool.InputError{Tool: f.spec.Name, Reason: `"what" is missing`}
	}
	return fakePlan{f, what}, nil
}

// Inspect looks whether the world was changed.
func (f *fake) Inspect(ctx context.Context, _ tool.Env, input json.RawMessage, _ map[string]string) (tool.Finding, error) {
	what, _ := esjson.GetString(input, "what")
	f.b.note("inspect %s", what)
	if ctx.Err() != nil {
		return tool.Unclear, context.Cause(ctx)
	}
	if slices.Contains(f.b.ran, f.spec.Name+" "+what) {
		return tool.Done, nil
	}
	return tool.NotDone, nil
}

type fakePlan struct {
	f    *fake
	what string
}

func (p fakePlan) Ask() tool.Ask {
	ask := tool.Ask{Tool: p.f.spec.Name, Kind: "tool", Text: p.what, Title: p.f.spec.Name + " " + p.what}
	if p.f.spec.Class == tool.Command {
		ask.Kind, ask.Command = "command", p.what
	}
	if p.f.ask != nil {
		p.f.ask(&ask)
	}
	return ask
}

func (p fakePlan) Run(ctx context.Context, out tool.Output) (tool.Result, error) {
	did := p.f.spec.Name + " " + p.what
	p.f.b.note("run %s", did)
	if p.f.run != nil {
		return p.f.run(ctx, out, p.what)
	}
	p.f.b.ran = append(p.f.b.ran, did)
	return tool.Result{Text: "did " + did}, nil
}

// asks lets a function answer the agent's questions.
type asks func(ctx context.Context, q api.QuestionOpened) (agent.Answer, error)

func (f asks) Ask(ctx context.Context, q api.QuestionOpened) (agent.Answer, error) { return f(ctx, q) }

// person answers every question the same way and remembers what was asked.
func (b *bench) person(a agent.Answer, err error) agent.Asker {
	return asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
		b.asked = append(b.asked, q)
		b.note("ask %s", q.Kind)
		return a, err
	})
}

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

// sonnet is a model with prices.
func sonnet(t *testing.T) catalogue.Model {
	t.Helper()
	m, ok := catalogue.Find("anthropic", "claude-sonnet-4-5")
	if !ok {
		t.Fatal("the catalogue does not know the model")
	}
	return m
}

// imageList is one image block.
var imageList = []json.RawMessage{[]byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}`)}
