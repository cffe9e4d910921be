package api

import "encoding/json"

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
