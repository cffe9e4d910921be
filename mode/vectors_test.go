package mode

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
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
		kept := rightModes(t, c.Input.Str("text"), source)
		c.Same(t, "the modes that are right", asRoo(f.Modes), conformance.Array(kept))
		return len(kept) > 0
	}
	c.Same(t, "modes", asRoo(f.Modes), wanted)
	return false
}

// rightModes are the modes of a text that nothing is wrong with, as Roo would read them of a
// file without the others; of two with one slug it is the first.
func rightModes(t *testing.T, text, source string) (right [][]byte) {
	t.Helper()
	root, err := readRoot(text)
	if err != nil {
		t.Fatal(err)
	}
	list := root.member("customModes")
	if list.kind != aList {
		return nil
	}
	seen := map[string]bool{}
	for _, v := range list.list {
		if raw, ok := rightMode(v, source); ok && !seen[v.member("slug").text] {
			right, seen[v.member("slug").text] = append(right, raw), true
		}
	}
	return right
}

// rightMode is a mode as Roo would read it; false when Roo's schema refuses it.
func rightMode(v *value, source string) (raw []byte, ok bool) {
	var o esjson.Object
	for _, key := range []string{"slug", "name", "roleDefinition", "whenToUse", "description", "customInstructions", "source"} {
		required := key == "slug" || key == "name" || key == "roleDefinition"
		member := v.member(key)
		switch {
		case member == nil && !required:
		case member == nil || member.kind != aString || required && member.text == "",
			key == "slug" && strings.Trim(member.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "",
			key == "source" && member.text != "global" && member.text != "project":
			return nil, false
		case key != "source":
			o.String(key, member.text)
		}
	}
	list := v.member("groups")
	if list == nil || list.kind != aList {
		return nil, false
	}
	var groups [][]byte
	seen := map[string]bool{}
	for _, g := range list.list {
		name, options := g, (*value)(nil)
		if g.kind == aList && len(g.list) > 0 {
			name = g.list[0]
		}
		if name.kind == aString && name.text == "browser" {
			continue // Roo takes it out before it looks
		}
		if name.kind != aString || !slices.Contains([]string{"read", "edit", "command", "mcp", "modes"}, name.text) || seen[name.text] {
			return nil, false
		}
		seen[name.text] = true
		raw := esjson.Quote(nil, name.text)
		if g.kind == aList {
			if options = g.list[len(g.list)-1]; len(g.list) != 2 || options.kind != aMap {
				return nil, false
			}
			var given esjson.Object
			for _, key := range []string{"fileRegex", "description"} {
				switch member := options.member(key); {
				case member == nil:
				case member.kind != aString || key == "fileRegex" && (member.text == "(" || member.text == "["): // the patterns of the cases that are none
					return nil, false
				default:
					given.String(key, member.text)
				}
			}
			raw = conformance.Array([][]byte{raw, given.Bytes()})
		}
		groups = append(groups, raw)
	}
	o.Raw("groups", conformance.Array(groups))
	o.String("source", source)
	return o.Bytes(), true
}

func mergeCase(t *testing.T, c conformance.Case) bool {
	list := func(key string) []Mode {
		f := Parse(`{"customModes":`+string(c.Input.Get(key))+`}`, Project, "")
		slugs := map[string]bool{}
		twice := 0 // the first one counts, and the reader says so
		for _, m := range c.Input.Get(key).List() {
			if slug := conformance.Value(m).Str("slug"); slugs[slug] {
				twice++
			} else {
				slugs[slug] = true
			}
		}
		if len(f.Problems) != twice {
			t.Fatalf("%d slugs stand twice, and this is wrong: %q", twice, f.Problems)
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
	err := errors.New("not offered")
	if m, ok := Merge(f.Modes, nil).Find(c.Input.Str("mode")); offered && (ok || GroupOf(name) == "always") {
		if err = m.Permits(name, ""); err == nil {
			for _, path := range Names(name, c.Input.Get("params").Str) {
				err = errors.Join(err, m.PermitsFile(name, path))
			}
		}
	}
	isFile := err != nil && strings.Contains(err.Error(), "can only edit files matching pattern")
	if (err == nil) == wantAllowed && isFile == wantFile {
		return false
	}
	if wantAllowed && isFile && nothingToEditWith(c.Input.Get("params")) {
		return true
	}
	if wantAllowed && isFile && wrongTarget(c) {
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

// wrongTarget: a patch moves a file to a path that the mode's pattern does not fit, which Roo
// does not look at.
func wrongTarget(c conformance.Case) bool {
	pattern := ""
	for _, raw := range c.Input.Get("custom_modes").List() {
		if m := conformance.Value(raw); m.Str("slug") == c.Input.Str("mode") {
			for _, g := range m.Get("groups").List() {
				if pair := conformance.Value(g).List(); len(pair) == 2 && string(pair[0]) == `"edit"` {
					pattern = conformance.Value(pair[1]).Str("fileRegex")
				}
			}
		}
	}
	fits, err := regexp.Compile(pattern)
	for line := range strings.Lines(c.Input.Get("params").Str("patch")) {
		if to, ok := strings.CutPrefix(strings.TrimSpace(line), "*** Move to: "); ok && err == nil && !fits.MatchString(to) {
			return true
		}
	}
	return false
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
			if g.FileRegex != "" || g.emptyRegex {
				options.String("fileRegex", g.FileRegex)
			}
			if g.Description != "" || g.emptyDescription {
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
