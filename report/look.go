package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

// Lines are messages of a task as a terminal shows them, before colours and wrapping.
type Lines struct {
	Task      string         `json:"task_id"`
	Items     []ShownMessage `json:"items"`
	Total     int            `json:"total"`       // messages of the history
	Before    *int           `json:"next_before"` // the parameter before for earlier messages; null at the start
	After     *int           `json:"next_after"`  // the parameter after for later messages; null at the end
	StandIn   string         `json:"stand_in"`    // why this history was reconstructed from the other one; "" = it was not
	Notes     []string       `json:"notes"`       // what was repaired, and what could not be read
	Questions []string       `json:"questions"`   // the open ones
}

// ShownMessage is one message in lines.
type ShownMessage struct {
	Number int    `json:"number"` // from 1
	Lines  []Line `json:"lines"`
}

// Line is one line and its role.
type Line struct {
	Style string `json:"style"`
	Text  string `json:"text"`
}

// Commits are commits of a task's journal.
type Commits struct {
	Task   string   `json:"task_id"`
	Items  []Commit `json:"items"`
	Total  int      `json:"total"`
	Before *int     `json:"next_before"`
	After  *int     `json:"next_after"`
}

// Commit is a journal line as --json shows it.
type Commit struct {
	Seq    uint64          `json:"seq"`
	Epoch  uint64          `json:"epoch"`
	At     string          `json:"at,omitempty"` // RFC 3339 in UTC, milliseconds
	By     string          `json:"by,omitempty"`
	Events []journal.Event `json:"events,omitempty"`
	Damage string          `json:"damage,omitempty"`
}

// CommitsOf returns all commits of a task's journal, the oldest first. journal.ErrNotFound: the task has no journal.
func CommitsOf(ctx context.Context, v *store.View) ([]Commit, error) {
	if v.Log == nil {
		return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, journal.ErrNotFound)
	}
	var all []Commit
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			all = append(all, Commit{Seq: lost.Seq, Damage: lost.Reason})
		case err != nil:
			return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		default:
			all = append(all, Commit{Seq: c.Seq, Epoch: c.Epoch, At: Stamp(c.At), By: c.By, Events: c.Events})
		}
	}
	return all, nil
}

// ContextUse is what the next request of a task consists of. Unknown tokens are null.
type ContextUse struct {
	Task     string        `json:"task_id"`
	Model    string        `json:"model"`
	Window   *int64        `json:"window"`
	Reply    *int64        `json:"reply"` // of the window, kept free for the reply
	Used     int64         `json:"used"`
	Free     *int64        `json:"free"`
	Counted  bool          `json:"counted"` // by the provider; else estimated
	Messages int           `json:"messages"`
	Parts    []ContextPart `json:"parts"`
	AsIf     *string       `json:"as_if"` // the profile that is used in place of the task's own, which is unknown here

	Unknown *UnknownProfile `json:"unknown_profile,omitempty"`
}

// UnknownProfile is a profile that a task names and the settings do not have.
type UnknownProfile struct {
	Name   string `json:"name"`
	Source string `json:"source"` // the task's: the setting source_profiles.SOURCE names a profile for all of its tasks
}

// ContextPart is a part of a request.
type ContextPart struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// ContextUseOf is the document of what engine.ContextAs returns.
func ContextUseOf(id string, u agent.ContextUse, who string) ContextUse {
	out := ContextUse{Task: id, Model: u.Model, Used: u.Used, Counted: u.Counted, Messages: u.Messages, Parts: []ContextPart{}}
	if u.Window > 0 {
		out.Window, out.Reply, out.Free = &u.Window, &u.Reply, &u.Free
	}
	for _, p := range u.Parts {
		out.Parts = append(out.Parts, ContextPart(p))
	}
	if who != "" {
		out.AsIf = &who
	}
	return out
}

// Exported is the report of an export; it comes behind the file.
type Exported struct {
	Masked  int           `json:"masked"`
	Damaged []api.Damage  `json:"damaged"`
	Unread  []Unread      `json:"unread"`
	Skipped []string      `json:"skipped"`
	Failed  []NotExported `json:"failed,omitempty"`
}

// NotExported is a task that an archive does not hold.
type NotExported struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Problem string `json:"problem"`
}

// Unread is a message that could not be read.
type Unread struct {
	History string `json:"history"` // ui or api
	Number  int    `json:"number"`  // from 1
	Problem string `json:"problem"`
}
