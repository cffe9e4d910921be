package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Look is what the disk holds of a task at one moment.
type Look struct {
	Ref     store.Ref
	Commits []journal.Commit
	UI, API []json.RawMessage // as the journal says
	Calls   []Made
	Status  string
	Open    []string        // open questions
	Asked   []string        // what they ask, in their order
	Shown   map[string]bool // calls that have a row for the person
	Damaged []string
}

// Made is one call of the model. Its input and result are read while the task is
// open: afterwards there is nothing to read them from.
type Made struct {
	task.Call
	Input  json.RawMessage
	Result json.RawMessage
}

// Look reads a task and changes nothing.
func (b *Bench) Look(ctx context.Context, id string) (Look, error) {
	var l Look
	o := store.Options{Root: b.Root(), Cache: filepath.Join(b.Dir, "cache")}
	if b.Sources != "none" {
		o.Sources = []string{b.Sources}
	}
	s, err := store.Open(o)
	if err != nil {
		return l, err
	}
	if l.Ref, err = s.Find(ctx, id); err != nil {
		return l, err
	}
	v, err := s.Read(ctx, l.Ref)
	if err != nil {
		return l, err
	}
	err = l.fill(ctx, v)
	return l, errors.Join(err, v.Close())
}

func (l *Look) fill(ctx context.Context, v *store.View) error {
	if v.Log != nil {
		for c, err := range v.Log.Read(ctx, 1) {
			if err != nil {
				return fmt.Errorf("read the journal: %w", err)
			}
			l.Commits = append(l.Commits, c)
		}
	}
	l.Shown = map[string]bool{}
	for _, m := range v.State.UI() {
		l.UI = append(l.UI, append(json.RawMessage(nil), m.Raw()...))
	}
	for _, m := range v.State.API() {
		l.API = append(l.API, append(json.RawMessage(nil), m.Raw()...))
	}
	for _, c := range v.State.Calls() {
		made := Made{Call: *c, Input: append(json.RawMessage(nil), c.Input()...)}
		if c.Finished != nil {
			result, err := c.Result()
			if err != nil {
				return fmt.Errorf("read the result of call %s: %w", c.ID, err)
			}
			made.Result = append(json.RawMessage(nil), result...)
		}
		l.Calls = append(l.Calls, made)
		if m := v.State.Message(c.UI); m != nil && m.Hidden == "" {
			l.Shown[c.ID] = true
		}
	}
	for _, q := range v.State.Questions {
		l.Open = append(l.Open, q.Question)
		l.Asked = append(l.Asked, q.Text)
	}
	l.Status = v.Summary.Status
	for _, d := range v.Summary.Damaged {
		l.Damaged = append(l.Damaged, d.File+": "+d.Problem)
	}
	return nil
}

// Events are the events of a type, over all commits.
func (l Look) Events(typ string) []json.RawMessage {
	var out []json.RawMessage
	for _, c := range l.Commits {
		for _, e := range c.Events {
			if name, _ := esjson.GetString(e, "type"); name == typ {
				out = append(out, e)
			}
		}
	}
	return out
}

// Started counts how often the bodies of calls of a tool were begun.
func (l Look) Started(name string) int {
	n := 0
	for _, e := range l.Events("tool.started") {
		if got, _ := esjson.GetString(e, "name"); got == name {
			n++
		}
	}
	return n
}

// historyFiles are the files that Roo and its relatives read.
var historyFiles = []string{"ui_messages.json", "api_conversation_history.json", "history_item.json", "task_metadata.json"}

// CheckFiles compares Roo's two history files with the journal's histories.
func (l Look) CheckFiles() error {
	for name, want := range map[string][]json.RawMessage{historyFiles[0]: l.UI, historyFiles[1]: l.API} {
		data, err := os.ReadFile(filepath.Join(l.Ref.Dir, name))
		if err != nil {
			return fmt.Errorf("compare with the journal: %w", err)
		}
		var got []json.RawMessage
		if err := json.Unmarshal(data, &got); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(got) != len(want) {
			return fmt.Errorf("%s has %d messages, the journal %d", name, len(got), len(want))
		}
		for i := range got {
			if !esjson.Equal(got[i], want[i]) {
				return fmt.Errorf("%s: message %d is %s, in the journal %s", name, i, got[i], want[i])
			}
		}
	}
	return nil
}
