package api

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/money"
)

// Hit is a message that holds a query. Its JSON has only the members of the task that identify it.
type Hit struct {
	Task    Summary
	History string // ui or api
	Number  int    // its place in the visible history, from 1
	TS      int64  // Unix milliseconds, 0 when the message has none
	Snippet string // one line
	Kind    string
}

// shortTask is the task of a hit. All of it would be many times the hit.
type taskOfHit struct {
	ID        string  `json:"id"`
	Source    string  `json:"source"`
	Title     string  `json:"title"`
	Workspace string  `json:"workspace"`
	Status    string  `json:"status"`
	UpdatedAt *string `json:"updated_at"`
	TS        int64   `json:"ts"`
}

// MarshalJSON gives the contract's shape.
func (h Hit) MarshalJSON() ([]byte, error) {
	t := h.Task
	return json.Marshal(struct {
		Task    taskOfHit `json:"task"`
		History string    `json:"history"`
		Number  int       `json:"number"`
		TS      int64     `json:"ts"`
		Snippet string    `json:"snippet"`
		Kind    string    `json:"kind"`
	}{taskOfHit{t.ID, t.Source, t.Title, t.Workspace, t.Status, t.UpdatedAt, t.TS}, h.History, h.Number, h.TS, h.Snippet, h.Kind})
}

// UnmarshalJSON reads what MarshalJSON wrote: of the task, what that has of it.
func (h *Hit) UnmarshalJSON(data []byte) error {
	in := struct {
		Task    *taskOfHit `json:"task"`
		History *string    `json:"history"`
		Number  *int       `json:"number"`
		TS      *int64     `json:"ts"`
		Snippet *string    `json:"snippet"`
		Kind    *string    `json:"kind"`
	}{&taskOfHit{}, &h.History, &h.Number, &h.TS, &h.Snippet, &h.Kind}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if t := in.Task; t != nil {
		h.Task = Summary{
			ID: t.ID, Source: t.Source, Title: t.Title, Workspace: t.Workspace,
			Status: t.Status, UpdatedAt: t.UpdatedAt, TS: t.TS,
		}
	}
	return nil
}

// The two histories of a task.
const (
	UI  = "ui"  // what the user saw
	API = "api" // what the model saw
)

// Scopes are the places that a search can be narrowed to: the two histories, what tools got and returned, and paths of
// files.
var Scopes = []string{UI, API, "tool", "path"}

// SourceState is what one storage holds.
type SourceState struct {
	Name    string `json:"name"`
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	State   string `json:"state"` // readable, partly damaged, or "unreachable: why": never just empty
	Tasks   int    `json:"tasks"`
	Damaged int    `json:"damaged"`
	Empty   int    `json:"empty"`
	Bytes   int64  `json:"bytes"` // of the tasks' files

	// Problem is what is wrong with the tool's own index of its tasks. All of them are
	// listed without it; what only the index knows may be missing.
	Problem string `json:"problem,omitempty"`

	Folder string `json:"-"` // the folder of task folders
}

// The states of a source. An unreachable one has a reason behind the colon, and is never just empty: what it holds is
// unknown, not gone.
const (
	SourceReadable      = "readable"
	SourcePartlyDamaged = "partly damaged"
	SourceUnreachable   = "unreachable: "
)

// Unreachable reports whether the source could not be read.
func (src SourceState) Unreachable() bool { return strings.HasPrefix(src.State, SourceUnreachable) }

// TaskFilter narrows and orders a list of tasks. Zero members do not filter.
type TaskFilter struct {
	Workspace string // the folder, by any of its paths
	Status    string
	Source    string // a source's or a tool's name
	Tag       string // one that the user gave it
	Words     string // of the title or id
	Model     string // words of the model's name
	MinCost   *money.USD
	MaxCost   *money.USD // a task of unknown cost passes neither
	Since     int64      // Unix milliseconds
	Until     int64
	Sort      string // newest (default; pinned ones first), oldest, cost, tokens
	Damaged   bool   // only damaged ones
	Empty     bool   // also folders without message bytes
	Tree      bool   // subtasks behind their parents; a page has whole families, and Limit or some more tasks
	Limit     int    // 0 = all
	Cursor    string // continues behind the last task of the page that gave it
}

// Query is the filter as the parameters of a list or a search, without Limit.
func (f TaskFilter) Query() url.Values {
	q := url.Values{}
	for name, text := range map[string]string{
		"workspace": f.Workspace, "status": f.Status, "source": f.Source, "tag": f.Tag, "query": f.Words, "model": f.Model,
		"sort": f.Sort, "cursor": f.Cursor, "min_cost": costText(f.MinCost), "max_cost": costText(f.MaxCost),
		"since": timeText(f.Since), "until": timeText(f.Until),
	} {
		if text != "" {
			q.Set(name, text)
		}
	}
	for name, on := range map[string]bool{"tree": f.Tree, "damaged": f.Damaged, "empty": f.Empty} {
		if on {
			q.Set(name, "true")
		}
	}
	return q
}

func costText(usd *money.USD) string {
	if usd == nil {
		return ""
	}
	return usd.String()
}

func timeText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return Stamp(ms)
}

// SearchQuery is a search for messages.
type SearchQuery struct {
	Text   string   // words, or phrases in double quotes; a hit has all of them
	In     []string // Scopes; none = everywhere
	Filter TaskFilter
	Tool   string // only tasks in which this tool was called
	File   string // only tasks in which a tool got a path that holds this
}
