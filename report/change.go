package report

import (
	"bytes"
	"encoding/json"

	"github.com/roost-dev/roost/store"
)

// Maybe is a member of a merge patch: absent, null, or a value.
type Maybe[T any] struct {
	Given bool
	Value *T // nil = null
}

// IsZero makes omitzero leave out what was not given.
func (m Maybe[T]) IsZero() bool { return !m.Given }

// MarshalJSON writes the value, or null.
func (m Maybe[T]) MarshalJSON() ([]byte, error) { return json.Marshal(m.Value) }

// UnmarshalJSON is only called for members that are there.
func (m *Maybe[T]) UnmarshalJSON(data []byte) error {
	m.Given, m.Value = true, nil
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	return json.Unmarshal(data, &m.Value)
}

// Form is what a value is written as, for who describes it.
func (m Maybe[T]) Form() any { return m.Value }

// TaskPatch changes a task: what is absent stays. null gives a task the title that it has
// by itself, takes all tags, or the pin. The settings are for its later runs.
type TaskPatch struct {
	Title  Maybe[string]   `json:"title,omitzero"`
	Tags   Maybe[[]string] `json:"tags,omitzero"`
	Pinned Maybe[bool]     `json:"pinned,omitzero"`

	// Tags to add to and remove from those that the task has, where tags does not replace all of them.
	AddTags    []string `json:"add_tags,omitempty"`
	RemoveTags []string `json:"remove_tags,omitempty"`

	Settings
}

// Deleted is a task that was put into the trash, and how it comes back.
type Deleted struct {
	store.Trashed
	Restore  string   `json:"restore"`  // what to ask: POST /v1/trash/NAME/restore
	Subtasks []string `json:"subtasks"` // names in the trash of those that went with it

	With []store.Trashed `json:"with,omitempty"` // the deleted subtasks
}

// NewPurge removes deleted tasks for good.
type NewPurge struct {
	Names []string `json:"names"` // whole names or ids in the trash
}

// Purged are the deleted tasks that were removed for good.
type Purged struct {
	Items []store.Trashed `json:"purged"`
}

// Restored is a task that came back from the trash.
type Restored struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`
}

// InputPatch gives words that wait in a queue other ones.
type InputPatch struct {
	Text string `json:"text"`
}
