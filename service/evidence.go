package service

import (
	"context"
	"fmt"
	"net/http"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
)

// Evidence is what is durable of a task at one moment, in a form that can be compared byte for byte with a later one.
type Evidence struct {
	Folder  string
	Status  string
	Commits []string // the events of each, joined
	UI, API []string
	Calls   map[string]string // by the ids of calls: the outcome that is recorded or, of an open call, that follows
	Results map[string]int    // by the ids of calls: how often the model was given the result
}

// Evidence reads a task's journal and the state that follows from it.
func (s *Service) Evidence(ctx context.Context, id string) (Evidence, error) {
	return read(ctx, s, id, func(v *store.View) (Evidence, error) {
		e := Evidence{Folder: v.Ref.Dir, Status: v.Summary.Status, Calls: map[string]string{}, Results: map[string]int{}}
		if v.Log == nil {
			return e, problem(http.StatusNotFound, "no_journal", "The task has no journal", "Roost has not worked on it")
		}
		for c, err := range v.Log.Read(ctx, 1) {
			if err != nil {
				return e, fmt.Errorf("read the journal: %w", err)
			}
			text := fmt.Sprint(c.Seq, c.Epoch, c.At)
			for _, event := range c.Events {
				text += string(event)
			}
			e.Commits = append(e.Commits, text)
		}
		for _, m := range v.State.UI() {
			e.UI = append(e.UI, string(m.Raw()))
		}
		for _, m := range v.State.API() {
			e.API = append(e.API, string(m.Raw()))
			content, _ := esjson.Get(m.Raw(), "content")
			for block := range esjson.Array(content) {
				if id, ok := esjson.GetString(block, "tool_use_id"); ok {
					e.Results[id]++
				}
			}
		}
		for _, c := range v.State.Calls() {
			e.Calls[c.ID] = string(c.Outcome())
			if c.Finished != nil {
				e.Calls[c.ID] = c.Finished.Outcome
			}
		}
		return e, nil
	})
}
