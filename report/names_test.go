package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// finds is what the store does with a name: exact ids first, else beginnings and ends.
func finds(all []store.Ref, name string) []store.Ref {
	source, want, named := strings.Cut(name, ":")
	if !named {
		want = name
	}
	var exact, part []store.Ref
	for _, r := range all {
		switch {
		case named && r.Source != source:
		case r.ID == want:
			exact = append(exact, r)
		case len(want) >= 3 && (strings.HasPrefix(r.ID, want) || strings.HasSuffix(r.ID, want)):
			part = append(part, r)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return part
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		ids  []string // SOURCE/ID
		want []string
	}{
		{"alone, six letters of its end do", []string{"s/1776200000000"}, []string{"000000"}},
		{"ends differ where beginnings are alike", []string{"s/0198aaaa-bbbb-0001", "s/0198aaaa-bbbb-0002"}, []string{"b-0001", "b-0002"}},
		{"never like a flag", []string{"s/0198aaaa-write", "s/0198aaaa-reade"}, []string{"a-write", "a-reade"}},
		{"a short id is whole", []string{"s/abc", "s/abcdefgh"}, []string{"abc", "cdefgh"}},
		{"one id in two places", []string{"s/twin", "t/twin"}, []string{"s:twin", "t:twin"}},
		{"an end that begins another", []string{"s/xxxxxx-abcdef", "s/abcdef-yyyyyy"}, []string{"xxxxxx", "yyyyyy"}},
		{"an id that is the beginning of another", []string{"s/abcdefg", "s/abcdefgh"}, []string{"bcdefg", "cdefgh"}},
		{"a folder that looks like a flag", []string{"s/-rf"}, []string{"s:-rf"}},
		{"a folder with a colon", []string{"s/a:b"}, []string{"s:a:b"}},
		{"beginning and end are the same letters", []string{"s/1111-1111-1111"}, []string{"1-1111"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all []store.Ref
			var items []api.Summary
			for _, text := range tt.ids {
				source, id, _ := strings.Cut(text, "/")
				all = append(all, store.Ref{Source: source, ID: id})
				items = append(items, api.Summary{Source: source, ID: id, Path: text})
			}
			names := ShortNames(all, items)
			var got []string
			for _, text := range tt.ids {
				got = append(got, names[strings.Replace(text, "/", ":", 1)])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every name that a list prints finds its task and no other one.
func TestNamesFindTheirTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.StringMatching(`[ab-]{1,9}`), rapid.StringMatching(`0198[ab]{2}-[ab]{8}`), rapid.StringMatching(`[a-b:]{1,8}`))
		var all []store.Ref
		var items []api.Summary
		seen := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "tasks") {
			r := store.Ref{Source: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "source"), ID: id.Draw(t, "id")}
			path := r.Source + ":" + r.ID
			if seen[path] {
				continue
			}
			seen[path] = true
			all = append(all, r)
			items = append(items, api.Summary{Source: r.Source, ID: r.ID, Path: path})
		}
		for path, name := range ShortNames(all, items) {
			got := finds(all, name)
			if len(got) != 1 || got[0].Source+":"+got[0].ID != path {
				t.Fatalf("%q finds %v, want %s", name, got, path)
			}
			if strings.HasPrefix(name, "-") {
				t.Fatalf("%q looks like a flag", name)
			}
		}
	})
}
