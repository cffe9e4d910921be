package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// What the next request of a task would be is told also where its profile lies in an editor's
// settings, as if somebody who is known here answered: nobody is chosen by that. A run of it
// still wants to be told whom to ask.
func TestTheContextOfATaskWhoseProfileIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		config setup.Config
		who    string
	}{
		"the usual provider":      {setup.Config{Provider: "anthropic", Model: "claude-opus-5-5", Keys: map[string]string{"anthropic": "k"}}, "anthropic"},
		"whom there is a key for": {setup.Config{Keys: map[string]string{"openai": "k"}}, "openai"},
		"a profile": {setup.Config{Keys: map[string]string{}, Profiles: map[string]setup.Profile{
			"half": {}, "mine": {Choice: setup.Choice{Provider: "openai-compatible", Model: "m", BaseURL: "http://127.0.0.1:1/v1"}},
		}}, "mine"},
		"nobody": {setup.Config{Keys: map[string]string{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, ref := startedTask(t)
			e := New(s, Options{Config: c.config})
			if err := e.changeIdle(t.Context(), ref, func(k *store.Task) error {
				return k.Commit(context.Background(), task.Changed{Settings: &task.Settings{Workspace: t.TempDir(), Profile: "theirs"}})
			}); err != nil {
				t.Fatal(err)
			}
			r := Request{Task: keyOf(ref)}
			use, err := e.ContextAs(t.Context(), r)
			who := ""
			if use.AsIf != nil {
				who = *use.AsIf
			}
			var unknown *setup.UnknownProfileError
			if who != c.who || (who == "") != errors.As(err, &unknown) || who != "" && (err != nil || use.Used == 0) {
				t.Errorf(`got %q %+v %v, want who = c.who and (who == "") = errors.As(err, &unknown) and (who = "" or (no error and use.Used != 0))`,
					who, use, err)
			}
			r.Text = "go on"
			if _, err := e.Start(t.Context(), r); !errors.As(err, &unknown) {
				t.Errorf("a run: %v", err)
			}
		})
	}
}

// A run continues with what its caller chose for it alone. What the user of another root chose is no choice of this one's.
func TestWhichRunsAChoiceIsInheritedFrom(t *testing.T) {
	const started, waiting = 1, "q1"
	choice := task.RunChoice{MaxDayMicros: -1, NoCheckpoints: true}
	for name, c := range map[string]struct {
		run     *task.Run
		request Request
		want    bool
	}{
		"a task without a run":               {nil, Request{automatic: true}, false},
		"a run that waits for an answer":     {&task.Run{Started: started, Waiting: waiting}, Request{}, true},
		"a queued run":                       {&task.Run{Queued: started}, Request{}, true},
		"an ended run, by a user":            {&task.Run{Started: started, Outcome: "completed"}, Request{}, false},
		"an ended run, by nobody":            {&task.Run{Started: started, Outcome: "interrupted"}, Request{automatic: true}, true},
		"an ended run that had more words":   {&task.Run{Started: started, Outcome: "completed"}, Request{queued: true}, true},
		"a received run, by nobody":          {&task.Run{Started: started, Outcome: "interrupted", Code: task.CodeReceived}, Request{automatic: true}, false},
		"a received run that had more words": {&task.Run{Started: started, Outcome: "interrupted", Code: task.CodeReceived}, Request{queued: true}, false},
	} {
		if c.run != nil {
			c.run.RunChoice = choice
		}
		c.request.inherit(c.run)
		want := task.RunChoice{}
		if c.want {
			want = choice
		}
		if c.request.RunChoice != want {
			t.Errorf("%s: got the choice %+v, want %+v", name, c.request.RunChoice, want)
		}
	}
}
