package mode

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Who gets a set cannot change it: the built-in modes are everybody's.
func TestSetsAreNotShared(t *testing.T) {
	var set Set
	all := set.All()
	all[0].Slug, all[1].Name = "changed", "changed"
	custom := Merge([]Mode{{Slug: "a", Name: "A"}}, nil)
	custom.Custom()[0].Name = "changed"
	if m, ok := custom.Find("a"); !ok || m.Name != "A" {
		t.Errorf("got %+v, want ok and m.Name = \"A\"", m)
	}
	if _, ok := (Set{}).Find("architect"); !ok {
		t.Error("a caller renamed a built-in mode")
	}
}

// Of one slug there is one mode: the workspace's before the user's before the built-in
// one, in its place; and what a file says of its origin does not count.
func TestMerge(t *testing.T) {
	slug := rapid.SampledFrom([]string{(Set{}).Slugs()[0], "code", "ask", "a", "b", "c"})
	modes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Mode {
		return Mode{Slug: slug.Draw(t, "slug"), Name: rapid.StringMatching(`[a-z]{3}`).Draw(t, "name"), Source: rapid.SampledFrom([]string{"", Global, Project, BuiltIn}).Draw(t, "source")}
	}))
	first := func(list []Mode, slug string) (Mode, bool) {
		i := slices.IndexFunc(list, func(m Mode) bool { return m.Slug == slug })
		if i < 0 {
			return Mode{}, false
		}
		return list[i], true
	}
	rapid.Check(t, func(r *rapid.T) {
		project, global := modes.Draw(r, "project"), modes.Draw(r, "global")
		set := Merge(project, global)
		slugs := set.Slugs()
		if !slices.Equal(slugs[:5], (Set{}).Slugs()) {
			r.Fatalf("the built-in ones moved: %q", slugs)
		}
		for i, s := range slugs {
			if slices.Contains(slugs[:i], s) {
				r.Fatalf("%q stands there twice", s)
			}
			want, source := Mode{}, BuiltIn
			if m, ok := first(project, s); ok {
				want, source = m, Project
			} else if m, ok := first(global, s); ok {
				want, source = m, Global
			}
			got, ok := set.Find(s)
			if !ok || got.Source != source || source != BuiltIn && got.Name != want.Name {
				r.Fatalf("%s: %+v, want %+v of %s", s, got, want, source)
			}
			if redefined := slices.Contains(set.Redefined(), s); redefined != (i < 5 && source == Project) {
				r.Fatalf("%s is redefined: %v", s, redefined)
			}
		}
	})
}
