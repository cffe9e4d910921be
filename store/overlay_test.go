package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// organise is what a child process does to tasks: words of STORE_TEST_DO, each a
// verb and a task.
func organise(ctx context.Context, s *Store) error {
	for step := range strings.FieldsSeq(os.Getenv("STORE_TEST_DO")) {
		verb, id, _ := strings.Cut(step, "=")
		var err error
		switch verb {
		case "restore":
			_, err = s.Restore(ctx, id)
		case "undo", "redo":
			_, _, err = s.Undo(ctx, id, UndoOptions{Redo: verb == "redo"})
		case "purge":
			_, err = s.Purge(ctx, id)
		case "list":
			_, err = s.List(ctx, Filter{})
		default:
			var ref Ref
			if ref, err = s.Find(ctx, id); err != nil {
				break
			}
			if verb == "delete" {
				_, err = s.Delete(ctx, ref)
			} else {
				_, err = s.Label(ctx, ref, Labels{Add: []string{verb}})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func label(t testing.TB, s *Store, id string, l Labels) Summary {
	t.Helper()
	ref := must[Ref](t)(s.Find(context.Background(), id))
	return must[Summary](t)(s.Label(context.Background(), ref, l))
}

// labels are what a row says of how a task is filed.
func labels(sum Summary) string {
	return fmt.Sprintf("%s %v %v", sum.Title, sum.Tags, sum.Pinned)
}

// listed is a task's row in the list, which must say what reading it says.
func listed(t testing.TB, s *Store, id string) Summary {
	t.Helper()
	all := must[Listing](t)(s.List(context.Background(), Filter{Empty: true})).Items
	i := slices.IndexFunc(all, func(sum Summary) bool { return sum.ID == id })
	if i < 0 {
		t.Fatalf("%s is not listed", id)
	}
	if got := labels(view(t, s, id).Summary); got != labels(all[i]) {
		t.Errorf("read %s, listed %s", got, labels(all[i]))
	}
	return all[i]
}

func TestLabelsOfAnOwnTask(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	dir := filepath.Join(root, "tasks", "mine")
	item := read(t, dir, roofmt.ItemName)
	title := "another <title>"
	got := label(t, s, "mine", Labels{Title: &title, Add: []string{"work", "später"}, Pinned: ptr(true)})
	if labels(got) != "another <title> [work später] true" {
		t.Error(labels(got))
	}
	got = label(t, s, "mine", Labels{Remove: []string{"work", "never"}, Add: []string{"später"}})
	if labels(got) != "another <title> [später] true" || labels(listed(t, s, "mine")) != labels(got) {
		t.Error(labels(got))
	}
	// They are events of the task: a copy of its folder brings them along.
	other := open(t, t.TempDir())
	check(t, os.CopyFS(filepath.Join(other.TasksDir(), "mine"), os.DirFS(dir)))
	if got := listed(t, other, "mine"); labels(got) != "another <title> [später] true" {
		t.Error(labels(got))
	}
	if exists(root, "overlay") {
		t.Error("an overlay for a task of our own")
	}
	// Roo's row keeps Roo's title: the first message's text.
	if got := read(t, dir, roofmt.ItemName); got != item {
		t.Errorf("Roo's row was %s, is %s", item, got)
	}
	// The journal alone gives them, without its index.
	check(t, os.Remove(filepath.Join(dir, "journal.idx")))
	if got := label(t, s, "mine", Labels{Remove: []string{"später"}, Pinned: ptr(false)}); labels(got) != "another <title> [] false" {
		t.Error(labels(got))
	}
}

func TestLabelsOfAForeignTask(t *testing.T) {
	for _, continued := range []bool{false, true} {
		t.Run(fmt.Sprint("continued:", continued), func(t *testing.T) {
			storage, _ := rooStorage(t, "theirs")
			root := t.TempDir()
			s := open(t, root, storage)
			if continued {
				closeTask(t, own(t, s, "theirs").Task)
			}
			before := tree(t, storage)
			title := "mine to name"
			label(t, s, "theirs", Labels{Title: &title})
			label(t, s, "theirs", Labels{Add: []string{"a", "b"}})
			got := label(t, s, "theirs", Labels{Pinned: ptr(true), Remove: []string{"a"}})
			want := "mine to name [b] true"
			if labels(got) != want || labels(listed(t, open(t, root, storage), "theirs")) != want {
				t.Errorf("%s, want %s", labels(got), want)
			}
			if d := cmp.Diff(before, tree(t, storage)); d != "" {
				t.Error("the editor's folder changed:", d)
			}
			// Nothing to change is nothing to write.
			before = tree(t, root)
			label(t, s, "theirs", Labels{Title: &title, Add: []string{"b"}, Remove: []string{"x"}, Pinned: ptr(true)})
			if d := cmp.Diff(before, tree(t, root)); d != "" {
				t.Error(d)
			}
			// Running it is no reason to lose them.
			k := own(t, s, "theirs").Task
			commit(t, k, task.UI, uiRow(9, "more"))
			closeTask(t, k)
			if got := listed(t, s, "theirs"); labels(got) != want {
				t.Error(labels(got))
			}
		})
	}
}

func TestLabelsThatCannotBe(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	ref := must[Ref](t)(s.Find(context.Background(), "mine"))
	before := tree(t, root)
	for _, l := range []Labels{
		{Title: ptr("")},
		{Title: ptr(" \n\t")},
		{Title: ptr(strings.Repeat("x", titleMax+1))},
		{Title: ptr("half \xff")},
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
		{Add: []string{strings.Repeat("x", tagMax+1)}},
		{Add: []string{"a"}, Remove: []string{"a"}},
	} {
		if _, err := s.Label(context.Background(), ref, l); !errors.Is(err, ErrLabel) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if d := cmp.Diff(before, tree(t, root)); d != "" {
		t.Error(d)
	}
	if got := label(t, s, "mine", Labels{Add: []string{"C++", "日本", "a/b", strings.Repeat("x", tagMax)}}); len(got.Tags) != 4 {
		t.Error(got.Tags)
	}
}

// Whatever is done in whatever order, an own and a foreign task are filed alike,
// as a set of tags, a title and a pin would be.
func TestLabelsProperty(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	root := t.TempDir()
	closeTask(t, create(t, open(t, root), "mine"))
	var tags []string
	title, pinned := map[string]string{"mine": "T mine", "theirs": "do it"}, false
	rapid.Check(t, func(r *rapid.T) {
		s := open(t, root, storage) // what is in memory is no help
		var l Labels
		words := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		l.Add = rapid.SliceOfN(words, 0, 2).Draw(r, "add")
		for _, word := range rapid.SliceOfN(words, 0, 2).Draw(r, "remove") {
			if !slices.Contains(l.Add, word) {
				l.Remove = append(l.Remove, word)
			}
		}
		if rapid.Bool().Draw(r, "pin?") {
			l.Pinned = ptr(rapid.Bool().Draw(r, "pin"))
			pinned = *l.Pinned
		}
		if rapid.Bool().Draw(r, "title?") {
			l.Title = ptr(rapid.StringMatching(`[a-z<>"\\ü]{1,5}`).Draw(r, "title"))
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
			if got := label(t, s, id, l); labels(got) != want || labels(listed(t, s, id)) != want {
				r.Fatalf("%s: %s, want %s", id, labels(got), want)
			}
		}
	})
}

// A change in the overlay that is damaged is lost, and no other; nothing of it
// keeps a list from showing every task, and reading mends nothing.
func TestOverlayDamage(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	root := t.TempDir()
	s := open(t, root, storage)
	for _, l := range []Labels{{Title: ptr("first title")}, {Pinned: ptr(true)}, {Add: []string{"kept"}}} {
		label(t, s, "theirs", l)
	}
	path := filepath.Join(root, "overlay", "journal.jsonl")
	whole := read(t, filepath.Dir(path), "journal.jsonl")
	for _, tt := range []struct{ name, text, want string }{
		{"a letter in the middle", strings.Replace(whole, "first title", "first tXtle", 1), "do it [kept] true"},
		{"an unfinished line", whole + `{"seq":99,"ep`, "first title [kept] true"},
		{"no overlay at all", "", "do it [] false"},
		{"garbage", "\x00\x00\x00", "do it [] false"},
	} {
		check(t, os.WriteFile(path, []byte(tt.text), 0o600))
		before := tree(t, root)
		if got := listed(t, s, "theirs"); labels(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, labels(got), tt.want)
		}
		if d := cmp.Diff(before, tree(t, root)); d != "" {
			t.Errorf("%s: reading changed %s", tt.name, d)
		}
	}
	// It can be written again, and the garbage is kept.
	if got := label(t, s, "theirs", Labels{Add: []string{"again"}}); labels(got) != "do it [again] false" {
		t.Error(labels(got))
	}
	torn := must[[]string](t)(filepath.Glob(filepath.Join(root, "overlay", "journal.torn-*")))
	if len(torn) != 1 {
		t.Errorf("set aside: %v", torn)
	}
}

// Pinned tasks stand at the top of the order for people, and tags narrow a list.
func TestPinsAndTagsInTheList(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	s := open(t, t.TempDir(), storage)
	for i, id := range []string{"old", "mid", "new"} {
		k := must[*Task](t)(s.Create(context.Background(), task.Created{Task: id, Number: 1, CreatedAt: ts0},
			task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(uiRow(100+i, id))}}))
		closeTask(t, k)
	}
	label(t, s, "theirs", Labels{Pinned: ptr(true), Add: []string{"x"}})
	label(t, s, "old", Labels{Pinned: ptr(true), Add: []string{"x", "y"}})
	for _, tt := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "old theirs new mid"},
		{Filter{Sort: "newest", Limit: 3}, "old theirs new"},
		{Filter{Sort: "oldest"}, "theirs old mid new"},
		{Filter{Tag: "x"}, "old theirs"},
		{Filter{Tag: "y"}, "old"},
		{Filter{Tag: "X"}, ""},
	} {
		var got []string
		for _, sum := range must[Listing](t)(s.List(context.Background(), tt.filter)).Items {
			got = append(got, sum.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %s", tt.filter, got, tt.want)
		}
	}
}
