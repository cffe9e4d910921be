package api

import (
	"encoding/json"
	"strings"
)

// Hit is a message that holds a query. Its JSON has of the task what says which it is.
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
