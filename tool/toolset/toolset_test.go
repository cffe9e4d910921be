package toolset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/webtool"
)

// Names, their order and the bytes of the schemas are part of every request:
// when they change, what providers have cached is lost and running tasks pay for
// it. So a change here is one that somebody means.
func TestTheSetAndItsOrder(t *testing.T) {
	var names, silent []string
	for _, tl := range All(webtool.Options{}) {
		if s := tl.Spec(); s.OptIn {
			silent = append(silent, s.Name)
		} else {
			names = append(names, s.Name)
		}
	}
	// What histories call and no model is told of: it costs no request anything.
	if d := cmp.Diff([]string{"edit", "edit_file", "search_replace"}, silent); d != "" {
		t.Error(d)
	}
	want := []string{"apply_diff", "apply_patch", "list_files", "read_file", "search_files", "write_to_file", "execute_command", "ask_followup_question", "attempt_completion", "switch_mode", "update_todo_list", "new_task", "read_command_output", "web_fetch"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	for range 20 {
		for i, tl := range All(webtool.Options{}) {
			if a, b := tl.Spec(), All(webtool.Options{})[i].Spec(); !slices.Equal(a.Schema, b.Schema) || a.Description != b.Description {
				t.Fatalf("%s is described in two ways", a.Name)
			}
		}
	}
}

// What providers ask of a tool, and the engine of its declaration.
func TestDeclarations(t *testing.T) {
	seen := map[string]bool{}
	for _, tl := range All(webtool.Options{}) {
		s := tl.Spec()
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			if seen[name] {
				t.Errorf("%s names two tools", name)
			}
			seen[name] = true
		}
		if kind, _ := esjson.GetString(s.Schema, "type"); kind != "object" || !esjson.Valid(s.Schema) {
			t.Errorf("%s: schema %s", s.Name, s.Schema)
		}
		properties, _ := esjson.Get(s.Schema, "properties")
		required, ok := esjson.Get(s.Schema, "required")
		if !ok {
			t.Errorf("%s does not say what is required", s.Name)
		}
		for r := range esjson.Array(required) {
			name, _ := esjson.Unquote(r)
			if _, ok := esjson.Get(properties, name); !ok {
				t.Errorf("%s requires %q, which it does not describe", s.Name, name)
			}
		}
		// What writes or runs must never be repeated blindly.
		switch s.Class {
		case tool.Read, tool.Control, tool.Web:
			if s.Replay != tool.Again {
				t.Errorf("%s has no effect and may not be run again: %s", s.Name, s.Replay)
			}
		case tool.Write:
			if _, ok := tl.(tool.Inspector); !ok || s.Replay != tool.Inspect {
				t.Errorf("%s writes and cannot be inspected: %s", s.Name, s.Replay)
			}
		case tool.Command:
			if s.Replay != tool.Never {
				t.Errorf("%s runs commands and may be run again: %s", s.Name, s.Replay)
			}
		default:
			t.Errorf("%s is of class %q", s.Name, s.Class)
		}
	}
}

// A model sees nothing of a tool but this.
func TestParametersAreDescribed(t *testing.T) {
	for _, tl := range All(webtool.Options{}) {
		s := tl.Spec()
		properties, _ := esjson.Get(s.Schema, "properties")
		for name, p := range esjson.Members(properties) {
			kind, _ := esjson.Get(p, "type")
			if len(kind) == 0 {
				t.Errorf("%s.%s has no type: %s", s.Name, name, p)
			}
			if d, _ := esjson.GetString(p, "description"); d == "" && name != "indentation" && name != "follow_up" {
				t.Errorf("%s.%s is not described", s.Name, name)
			}
		}
	}
}
