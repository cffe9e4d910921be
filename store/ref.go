package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/overlay"
)

// OwnSource is the name of Roost's own root among the sources.
const OwnSource = overlay.OwnSource

// Ref is one task in one place.
type Ref struct {
	ID     string
	Source string // "roost", or the source's name, e.g. "roo-code"
	Tool   string // roost, roo, cline, zoo, kilo
	Dir    string // the folder with the JSON files; of a subagent of Cline's its transcript
	Log    string // the folder with journal, index, lock and blobs; it may not exist yet
	Own    bool   // it is in Roost's own root
}

// Foreign reports whether another tool made the task and still owns its folder.
func (r Ref) Foreign() bool { return !r.Own }

// ErrNotFound: no task has that reference.
var ErrNotFound = errors.New("no such task")

// AmbiguousError: several tasks match a reference.
type AmbiguousError struct {
	Given      string
	Candidates []Ref
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits %d tasks: %s", e.Given, len(e.Candidates), strings.Join(e.Names(), ", "))
}

// Names are the candidates' ids, with the source where several candidates have the same id.
func (e *AmbiguousError) Names() []string {
	ids := map[string]int{}
	for _, c := range e.Candidates {
		ids[c.ID]++
	}
	names := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		if names[i] = c.ID; ids[c.ID] > 1 {
			names[i] = c.Source + ":" + c.ID
		}
	}
	return names
}

// RootError: Roost's own root cannot be used. There is no silent fallback.
type RootError struct {
	Path  string
	Check string // the check that failed
	Err   error
}

func (e *RootError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("root %s: %s: %v", e.Path, e.Check, e.Err)
	}
	return fmt.Sprintf("root %s: %s", e.Path, e.Check)
}

func (e *RootError) Unwrap() error { return e.Err }

// CheckID is an error for a task whose folder name cannot become a path of ours.
func CheckID(r Ref) error {
	if !api.ValidTaskID(r.ID) {
		return fmt.Errorf("task folder %s: its name cannot be a task id of Roost; import it under a new one", r.Dir)
	}
	return nil
}

// OwnRef is a task in Roost's own root.
func (s *Store) OwnRef(id string) Ref {
	dir := inFolder(s.TasksDir(), id)
	return Ref{ID: id, Source: OwnSource, Tool: "roost", Dir: dir, Log: dir, Own: true}
}
