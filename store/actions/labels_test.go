package actions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func TestLabelsOfAnOwnTask(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	dir := filepath.Join(root, "tasks", "mine")
	item := storetest.Read(t, dir, roofmt.ItemName)
	title := "another <title>"
	got := storetest.Label(t, s, "mine", labels.Change{Title: &title, Add: []string{"work", "später"}, Pinned: new(true)})
	if storetest.Labels(got) != "another <title> [work später] true" {
		t.Error(storetest.Labels(got))
	}
	got = storetest.Label(t, s, "mine", labels.Change{Remove: []string{"work", "never"}, Add: []string{"später"}})
	if storetest.Labels(got) != "another <title> [später] true" || storetest.Labels(storetest.Listed(t, s, "mine")) != storetest.Labels(got) {
		t.Error(storetest.Labels(got))
	}
	// They are events of the task: a copy of its folder brings them along.
	other := storetest.Open(t, t.TempDir())
	storetest.Check(t, os.CopyFS(filepath.Join(other.TasksDir(), "mine"), os.DirFS(dir)))
	if got := storetest.Listed(t, other, "mine"); storetest.Labels(got) != "another <title> [später] true" {
		t.Error(storetest.Labels(got))
	}
	if storetest.Exists(root, "overlay") {
		t.Error("an overlay for a task of our own")
	}
	// Roo's row keeps Roo's title: the first message's text.
	if got := storetest.Read(t, dir, roofmt.ItemName); got != item {
		t.Errorf("Roo's row was %s, is %s", item, got)
	}
	// The journal alone gives them, without its index.
	storetest.Check(t, os.Remove(filepath.Join(dir, "journal.idx")))
	if got := storetest.Label(t, s, "mine", labels.Change{Remove: []string{"später"}, Pinned: new(false)}); storetest.Labels(got) != "another <title> [] false" {
		t.Error(storetest.Labels(got))
	}
}

func TestLabelsOfAForeignTask(t *testing.T) {
	for _, continued := range []bool{false, true} {
		t.Run(fmt.Sprint("continued:", continued), func(t *testing.T) {
			storage, _ := storetest.RooStorage(t, "theirs")
			root := t.TempDir()
			s := storetest.Open(t, root, storage)
			if continued {
				storetest.Close(t, storetest.Own(t, s, "theirs").Task)
			}
			before := storetest.Tree(t, storage)
			title := "mine to name"
			storetest.Label(t, s, "theirs", labels.Change{Title: &title})
			storetest.Label(t, s, "theirs", labels.Change{Add: []string{"a", "b"}})
			got := storetest.Label(t, s, "theirs", labels.Change{Pinned: new(true), Remove: []string{"a"}})
			want := "mine to name [b] true"
			if storetest.Labels(got) != want || storetest.Labels(storetest.Listed(t, storetest.Open(t, root, storage), "theirs")) != want {
				t.Errorf("%s, want %s", storetest.Labels(got), want)
			}
			if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
				t.Error("the editor's folder changed:", d)
			}
			// Nothing to change is nothing to write.
			before = storetest.Tree(t, root)
			storetest.Label(t, s, "theirs", labels.Change{Title: &title, Add: []string{"b"}, Remove: []string{"x"}, Pinned: new(true)})
			if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
				t.Error(d)
			}
			// Running it is no reason to lose them.
			k := storetest.Own(t, s, "theirs").Task
			storetest.Commit(t, k, task.UI, storetest.UIRow(9, "more"))
			storetest.Close(t, k)
			if got := storetest.Listed(t, s, "theirs"); storetest.Labels(got) != want {
				t.Error(storetest.Labels(got))
			}
		})
	}
}

func TestLabelsThatCannotBe(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "mine"))
	before := storetest.Tree(t, root)
	for _, l := range []labels.Change{
		{Title: new("")},
		{Title: new(" \n\t")},
		{Title: new(strings.Repeat("x", 4096+1))},
		{Title: new("half \xff")},
		{Add: []string{""}},
		{Add: []string{"two words"}},
		{Add: []string{"a,b"}},
		{Add: []string{"tab\t"}},
		{Add: []string{"esc\x1b[2J"}},
		{Add: []string{"bidi\u202e"}},
		{Add: []string{"-flag"}},
		{Remove: []string{"+plus"}},
		{Add: []string{"#hash"}},
		{Add: []string{"half\xff"}},
		{Add: []string{strings.Repeat("x", 64+1)}},
		{Add: []string{"a"}, Remove: []string{"a"}},
		{Add: strings.Fields(strings.Repeat("x ", 1001))},
	} {
		if _, err := labels.Set(context.Background(), s, ref, l); !errors.Is(err, labels.ErrInvalid) {
			t.Errorf("got %+v: %v, want errors.Is(err, labels.ErrInvalid)", l, err)
		}
	}
	if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
		t.Error(d)
	}
	if got := storetest.Label(t, s, "mine", labels.Change{Add: []string{"C++", "日本", "a/b", strings.Repeat("x", 64)}}); len(got.Tags) != 4 {
		t.Error(got.Tags)
	}
}

// Whatever is done in whatever order, an own and a foreign task are filed alike,
// as a set of tags, a title and a pin would be.
func TestLabelsProperty(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	storetest.Close(t, storetest.Create(t, storetest.Open(t, root), "mine"))
	var tags []string
	title, pinned := map[string]string{"mine": "T mine", "theirs": "do it"}, false
	rapid.Check(t, func(r *rapid.T) {
		s := storetest.Open(t, root, storage) // what is in memory is no help
		var l labels.Change
		words := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		l.Add = rapid.SliceOfN(words, 0, 2).Draw(r, "add")
		for _, word := range rapid.SliceOfN(words, 0, 2).Draw(r, "remove") {
			if !slices.Contains(l.Add, word) {
				l.Remove = append(l.Remove, word)
			}
		}
		if rapid.Bool().Draw(r, "pin?") {
			l.Pinned = new(rapid.Bool().Draw(r, "pin"))
			pinned = *l.Pinned
		}
		if rapid.Bool().Draw(r, "title?") {
			l.Title = new(rapid.StringMatching(`[a-z<>"\\ü]{1,5}`).Draw(r, "title"))
			title["mine"], title["theirs"] = *l.Title, *l.Title
		}
		tags = slices.DeleteFunc(tags, func(x string) bool { return slices.Contains(l.Remove, x) })
		for _, a := range l.Add {
			if !slices.Contains(tags, a) {
				tags = append(tags, a)
			}
		}
		for id, title := range title {
			want := fmt.Sprintf("%s %v %v", title, append([]string{}, tags...), pinned)
			if got := storetest.Label(t, s, id, l); storetest.Labels(got) != want || storetest.Labels(storetest.Listed(t, s, id)) != want {
				r.Fatalf("%s: %s, want %s", id, storetest.Labels(got), want)
			}
		}
	})
}

// A change in the overlay that is damaged is lost, and no other; nothing of it
// keeps a list from showing every task, and reading mends nothing.
func TestOverlayDamage(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	for _, l := range []labels.Change{{Title: new("first title")}, {Pinned: new(true)}, {Add: []string{"kept"}}} {
		storetest.Label(t, s, "theirs", l)
	}
	path := filepath.Join(root, "overlay", "journal.jsonl")
	whole := storetest.Read(t, filepath.Dir(path), "journal.jsonl")
	for _, tt := range []struct{ name, text, want string }{
		{"a letter in the middle", strings.Replace(whole, "first title", "first tXtle", 1), "do it [kept] true"},
		{"an unfinished line", whole + `{"seq":99,"ep`, "first title [kept] true"},
		{"no overlay at all", "", "do it [] false"},
		{"garbage", "\x00\x00\x00", "do it [] false"},
	} {
		storetest.Check(t, os.WriteFile(path, []byte(tt.text), 0o600))
		before := storetest.Tree(t, root)
		if got := storetest.Listed(t, s, "theirs"); storetest.Labels(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, storetest.Labels(got), tt.want)
		}
		if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
			t.Errorf("%s: reading changed %s", tt.name, d)
		}
	}
	// It can be written again, and the garbage is kept.
	if got := storetest.Label(t, s, "theirs", labels.Change{Add: []string{"again"}}); storetest.Labels(got) != "do it [again] false" {
		t.Error(storetest.Labels(got))
	}
	torn := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "overlay", "journal.torn-*")))
	if len(torn) != 1 {
		t.Errorf("set aside: %v", torn)
	}
}

// Pinned tasks stand at the top of the order for people, and tags narrow a list.
func TestPinsAndTagsInTheList(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	s := storetest.Open(t, t.TempDir(), storage)
	for i, id := range []string{"old", "mid", "new"} {
		k := storetest.Must[*store.Task](t)(s.Create(context.Background(), task.Created{Task: id, Number: 1, CreatedAt: storetest.TS0},
			task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(storetest.UIRow(100+i, id))}}))
		storetest.Close(t, k)
	}
	storetest.Label(t, s, "theirs", labels.Change{Pinned: new(true), Add: []string{"x"}})
	storetest.Label(t, s, "old", labels.Change{Pinned: new(true), Add: []string{"x", "y"}})
	for _, tt := range []struct {
		filter store.Filter
		want   string
	}{
		{store.Filter{}, "old theirs new mid"},
		{store.Filter{TaskFilter: api.TaskFilter{Sort: "newest", Limit: 3}}, "old theirs new"},
		{store.Filter{TaskFilter: api.TaskFilter{Sort: "oldest"}}, "theirs old mid new"},
		{store.Filter{TaskFilter: api.TaskFilter{Tag: "x"}}, "old theirs"},
		{store.Filter{TaskFilter: api.TaskFilter{Tag: "y"}}, "old"},
		{store.Filter{TaskFilter: api.TaskFilter{Tag: "X"}}, ""},
	} {
		var got []string
		for _, sum := range storetest.Must[store.Listing](t)(s.List(context.Background(), tt.filter)).Items {
			got = append(got, sum.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %s", tt.filter, got, tt.want)
		}
	}
}
