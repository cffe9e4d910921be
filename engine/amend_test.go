package engine_test

import (
	"errors"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A task that is made without words is there with the settings of a run, once under one
// name, and runs when it is told something.
func TestCreate(t *testing.T) {
	b := newBench(t)
	model := b.script("- tools: [{name: attempt_completion, input: {result: done}}]\n")
	r := engine.Request{NewTask: "0199aaaa-0000-8000-8000-0000000000c1", Title: "the fence", Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: model, Mode: "ask"}}
	for range 2 { // a repeat finds it
		ref, err := b.engine.Create(t.Context(), r)
		if err != nil || ref.ID != r.NewTask {
			t.Fatal(ref, err)
		}
	}
	if _, err := b.engine.Create(t.Context(), engine.Request{NewTask: "0199aaaa-0000-8000-8000-0000000000c2", Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: model, Mode: "cod"}}); !isUnknownMode(err) {
		t.Errorf("got %v, want isUnknownMode(err)", err)
	}
	if refs, err := b.store.Refs(t.Context()); err != nil || len(refs) != 1 {
		t.Errorf("what was refused is there: %v %v", refs, err)
	}
	_, o, _ := b.run(engine.Request{Task: r.NewTask, Text: "go"})
	if o.State != "completed" {
		t.Error(o)
	}
	if s := b.settings(r.NewTask); s.Mode != "ask" || s.Model != model {
		t.Errorf("got %+v, want s.Mode = \"ask\" and s.Model = model", s)
	}
}

func isUnknownMode(err error) bool {
	var unknown *mode.UnknownError
	return errors.As(err, &unknown)
}

func (b *bench) settings(id string) task.Settings {
	b.t.Helper()
	ref, err := b.store.Find(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := b.store.Read(b.t.Context(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	return v.State.Settings
}

// Settings that are amended hold for later runs; what is refused, by the settings or
// because the caller saw another state, changes nothing.
func TestAmend(t *testing.T) {
	b := newBench(t)
	model := b.script("- tools: [{name: attempt_completion, input: {result: done}}]\n")
	run, _, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: model}})
	ref, err := b.store.Find(t.Context(), run.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Amend(t.Context(), ref, engine.Request{Choice: setup.Choice{Mode: "ask", Approve: "read", Limits: &api.RunLimits{MaxTurns: 4}}}); err != nil {
		t.Fatal(err)
	}
	want := b.settings(run.TaskID)
	if want.Mode != "ask" || want.Approve != "read" || want.Limits.MaxTurns != 4 || want.Model != model {
		t.Errorf(`got %+v, want want.Mode = "ask" and want.Approve = "read" and want.Limits.MaxTurns = 4 and want.Model = model`,
			want)
	}
	if _, err := b.engine.Amend(t.Context(), ref, engine.Request{Choice: setup.Choice{Mode: "cod"}}); !isUnknownMode(err) {
		t.Errorf("got %v, want isUnknownMode(err)", err)
	}
	seen, done := store.Expecting(t.Context(), ref, 1)
	defer done()
	if _, err := b.engine.Amend(seen, ref, engine.Request{Choice: setup.Choice{Mode: "code"}}); !errors.Is(err, store.ErrMoved) {
		t.Errorf("got %v, want ErrMoved: the caller saw an earlier commit", err)
	}
	if got := b.settings(run.TaskID); got.Mode != want.Mode || got.Limits != want.Limits {
		t.Errorf("what was refused changed %+v to %+v", want, got)
	}
}
