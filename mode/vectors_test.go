package mode

import (
	"errors"
	"slices"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
)

func TestVectorsModes(t *testing.T) {
	conformance.Run(t, "modes", func(t *testing.T, c conformance.Case) bool {
		switch fn := c.Input.Str("fn"); fn {
		case "load_file":
			return loadCase(t, c)
		case "merge":
			return mergeCase(t, c)
		case "tool_allowed":
			return toolCase(t, c)
		default:
			t.Fatalf("a function that nobody knows: %q", fn)
			return false
		}
	})
}

// loadCase: by choice a file of which Roo uses nothing because one mode is wrong still
// gives its other modes here, and says what is wrong with that one.
func loadCase(t *testing.T, c conformance.Case) bool {
	source := Global
	if c.Input.Str("kind") == "roomodes" {
		source = Project
	}
	f := Parse(c.Input.Str("text"), source, "")
	if got, want := f.Found, c.Want.Bool("has_custom_modes", false); got != want {
		t.Errorf("custom modes are there: %v, want %v (%q)", got, want, f.Problems)
	}
	if ok := c.Want.Get("schema_ok"); esjson.TypeOf(ok) == esjson.TypeBool {
		if got, want := len(f.Problems) == 0, string(ok) == "true"; got != want {
			t.Errorf("the file is right: %v, want %v (%q)", got, want, f.Problems)
		}
	}
	wanted := c.Want.Get("modes")
	if len(wanted.List()) == 0 && f.Found && len(f.Problems) > 0 {
		return len(f.Modes) > 0
	}
	c.Same(t, "modes", asRoo(f.Modes), wanted)
	return false
}

func mergeCase(t *testing.T, c conformance.Case) bool {
	list := func(key string) []Mode {
		f := Parse(`{"customModes":`+string(c.Input.Get(key))+`}`, Project, "")
		if len(f.Problems) > 0 {
			t.Fatal(f.Problems)
		}
		return f.Modes
	}
	set := Merge(list("project"), list("global"))
	c.Same(t, "custom", asRoo(set.Custom()), c.Want.Get("custom"))
	if got, want := set.Slugs(), c.Want.Get("all_slugs").Strings(); !slices.Equal(got, want) {
		t.Errorf("slugs %q, want %q", got, want)
	}
	return false
}

// optional are the tools that Roo offers to some models only. Here a model's family says so,
// and no mode (package catalogue, tool.Offer).
var optional = []string{"edit", "search_replace", "edit_file", "apply_patch"}

// toolCase: by choice a pattern holds for every call that names a file, also for one
// that carries nothing to edit it with.
func toolCase(t *testing.T, c conformance.Case) bool {
	f := Parse(`{"customModes":`+string(listOr(c.Input.Get("custom_modes")))+`}`, Project, "")
	if len(f.Problems) > 0 {
		t.Fatal(f.Problems)
	}
	name := c.Input.Str("tool")
	wantAllowed, wantFile := c.Want.Bool("allowed", false), c.Want.Bool("file_restriction", false)
	included, off := c.Input.Get("included_tools").Strings(), c.Input.Get("requirements")
	for i, n := range included {
		included[i] = canonical(n)
	}
	offered := off.Bool(name, true) && off.Bool(canonical(name), true) &&
		(!slices.Contains(optional, canonical(name)) || slices.Contains(included, canonical(name)))
	var err error = &ForbiddenError{}
	if m, ok := Merge(f.Modes, nil).Find(c.Input.Str("mode")); offered && (ok || GroupOf(name) == "always") {
		if err = m.Permits(name, ""); err == nil {
			for _, path := range Names(name, c.Input.Get("params").Str) {
				err = errors.Join(err, m.PermitsFile(name, path))
			}
		}
	}
	var file *FileError
	isFile := errors.As(err, &file)
	if (err == nil) == wantAllowed && isFile == wantFile {
		return false
	}
	if wantAllowed && isFile && nothingToEditWith(c.Input.Get("params")) {
		return true
	}
	t.Errorf("%v, want allowed %v, file restriction %v", err, wantAllowed, wantFile)
	return false
}

func listOr(v conformance.Value) []byte {
	if len(v) == 0 || esjson.TypeOf(v) != esjson.TypeArray {
		return []byte("[]")
	}
	return v
}

func nothingToEditWith(params conformance.Value) bool {
	for _, key := range []string{"content", "diff", "search", "replace", "old_string", "new_string", "patch", "operations", "args", "line"} {
		if v := params.Get(key); len(v) > 0 && string(v) != `""` && esjson.TypeOf(v) != esjson.TypeNull {
			return false
		}
	}
	return true
}

// asRoo are modes with Roo's members.
func asRoo(modes []Mode) []byte {
	out := []byte{'['}
	for i, m := range modes {
		if i > 0 {
			out = append(out, ',')
		}
		var o esjson.Object
		some := func(key, text string) {
			if text != "" {
				o.String(key, text)
			}
		}
		o.String("slug", m.Slug)
		o.String("name", m.Name)
		o.String("roleDefinition", m.RoleDefinition)
		some("whenToUse", m.WhenToUse)
		some("description", m.Description)
		some("customInstructions", m.CustomInstructions)
		groups := []byte{'['}
		for j, g := range m.Groups {
			if j > 0 {
				groups = append(groups, ',')
			}
			if !g.limited {
				groups = esjson.Quote(groups, g.Name)
				continue
			}
			var options esjson.Object
			if g.FileRegex != "" {
				options.String("fileRegex", g.FileRegex)
			}
			if g.Description != "" {
				options.String("description", g.Description)
			}
			groups = append(esjson.Quote(append(groups, '['), g.Name), ',')
			groups = append(append(groups, options.Bytes()...), ']')
		}
		o.Raw("groups", append(groups, ']'))
		some("source", m.Source)
		out = append(out, o.Bytes()...)
	}
	return append(out, ']')
}
