// Package mode defines the modes of a task: which tools a model may use and which files it may edit, its role, and
// which of the user's rules it gets. Modes and rules are Roo's: five built in, those of a workspace's .roomodes, and
// those of the user's own custom_modes.yaml.
//
// It is pure: it takes text, or an fs.FS to read from, and returns values. The same files give the same bytes, in a
// fixed order, because they form the system prompt and providers cache requests by their prefix.
//
// It differs from Roo on purpose in three ways. A mode that cannot be used is left out alone, with a reason, where Roo
// drops every mode of the file. A pattern for files applies to every call that edits, where Roo checks only calls with
// certain parameters. A pattern that takes too long to match a name does not match it.
//
// Limits: a file of modes has at most 256 KiB, and a text in it 32 KiB; the system prompt lists 60 modes; see rules.go
// for the limits of rules.
package mode

import "slices"

// The sources of modes.
const (
	BuiltIn = "builtin"
	Global  = "global"
	Project = "project"
)

// Default is the mode of a task that names none, and Fallback the mode of a task whose mode does not exist any more, as
// in Roo.
const (
	Default  = "code"
	Fallback = "architect"
)

// Mode is one mode.
type Mode struct {
	Slug               string  `json:"slug"` // letters, digits and dashes
	Name               string  `json:"name"`
	Source             string  `json:"source"`         // builtin, global, project
	Path               string  `json:"path,omitempty"` // the file that defines it, "" for a built-in one
	Description        string  `json:"description,omitempty"`
	WhenToUse          string  `json:"when_to_use,omitempty"`
	Groups             []Group `json:"groups"`
	RoleDefinition     string  `json:"role_definition"`
	CustomInstructions string  `json:"custom_instructions,omitempty"`
}

// Group is one group of tools that a mode may use.
type Group struct {
	Name string `json:"name"` // read, edit, command, mcp, modes
	// FileRegex is a JavaScript pattern: with the group edit, only files whose path matches may be edited. "" = all.
	FileRegex   string `json:"file_regex,omitempty"`
	Description string `json:"description,omitempty"` // of the pattern, for people

	limited bool // it was given with options, even empty ones
	// emptyRegex and emptyDescription: the option was given as "", and is exported so.
	emptyRegex, emptyDescription bool
	files                        *pattern
}

// Set is all modes of a workspace. The zero value holds the built-in modes.
type Set struct {
	custom []Mode
}

// Merge makes a set of a workspace's modes and the user's own. A workspace's mode takes precedence over a user's mode
// with the same slug, and both over a built-in one. In one list the first mode with a slug counts.
func Merge(project, global []Mode) Set {
	var s Set
	add := func(list []Mode, source string) {
		for _, m := range list {
			if !slices.ContainsFunc(s.custom, func(have Mode) bool { return have.Slug == m.Slug }) {
				m.Source = source
				s.custom = append(s.custom, m)
			}
		}
	}
	add(project, Project)
	add(global, Global)
	return s
}

// Custom returns the modes that are not built in, those of the workspace first.
func (s Set) Custom() []Mode { return slices.Clone(s.custom) }

// All returns the built-in modes in Roo's order, each as it was redefined if it was, and then the others.
func (s Set) All() []Mode {
	out := builtIn()
	for _, m := range s.custom {
		if i := slices.IndexFunc(out, func(have Mode) bool { return have.Slug == m.Slug }); i >= 0 {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	return out
}

// Find returns the mode with a slug.
func (s Set) Find(slug string) (Mode, bool) {
	for _, list := range [][]Mode{s.custom, makeBuiltIn()} { // an earlier mode of a slug replaces later ones
		for _, m := range slices.Backward(list) {
			if m.Slug == slug {
				return m, true
			}
		}
	}
	return Mode{}, false
}

// Slugs returns the slugs of all modes, in order.
func (s Set) Slugs() []string {
	var out []string
	for _, m := range s.All() {
		out = append(out, m.Slug)
	}
	return out
}

// Redefined returns the slugs of built-in modes that a workspace's file redefines: a person who chose such a mode
// should know.
func (s Set) Redefined() []string {
	var out []string
	for _, b := range builtIn() {
		if m, _ := s.Find(b.Slug); m.Source == Project {
			out = append(out, b.Slug)
		}
	}
	return out
}
