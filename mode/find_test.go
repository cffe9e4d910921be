package mode

import "testing"

// Find is All with a slug, whatever the workspace and the user redefine.
func TestFindIsWhatAllHas(t *testing.T) {
	named := func(slug, name string) Mode { return Mode{Slug: slug, Name: name} }
	for _, s := range []Set{
		{},
		Merge([]Mode{named("code", "project's"), named("mine", "m"), named("code", "again")}, []Mode{named("code", "user's"), named("ask", "user's ask")}),
		{custom: []Mode{named("code", "first"), named("code", "second")}},
	} {
		for _, want := range s.All() {
			got, ok := s.Find(want.Slug)
			if !ok || got.Name != want.Name || got.Source != want.Source {
				t.Errorf("%s: %q of %q, %v; want %q", want.Slug, got.Name, got.Source, ok, want.Name)
			}
		}
		for _, slug := range []string{"", "nobody's", "CODE"} {
			if m, ok := s.Find(slug); ok {
				t.Errorf("%q is %q", slug, m.Name)
			}
		}
	}
}
