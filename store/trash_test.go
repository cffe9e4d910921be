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

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func del(t testing.TB, s *Store, id string) Trashed {
	t.Helper()
	ref := must[Ref](t)(s.Find(context.Background(), id))
	return must[Trashed](t)(s.Delete(context.Background(), ref))
}

// trashNames are the names in the trash, in their order.
func trashNames(t testing.TB, s *Store) string {
	t.Helper()
	var out []string
	for _, x := range must[[]Trashed](t)(s.Trash(context.Background())) {
		out = append(out, x.Name)
	}
	return strings.Join(out, " ")
}

// indexIDs are the ids that Roo's index of our own root names.
func indexIDs(t testing.TB, root string) string {
	t.Helper()
	var ids []string
	for _, e := range must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks"))).Entries {
		id, _ := esjson.GetString(e, "id")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// content is every file of a task but what changes with each owner.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, sum := range tree(t, dir) {
		name := must[string](t)(filepath.Rel(dir, path))
		if name != "." && !strings.HasPrefix(name, "journal.") {
			out[name] = sum
		}
	}
	return out
}

func TestDeleteAndRestoreAnOwnTask(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, id := range []string{"one", "two"} {
		k := create(t, s, id)
		commit(t, k, task.UI, uiRow(2, strings.Repeat("long ", 80<<10))) // in a blob
		closeTask(t, k)
	}
	dir := filepath.Join(root, "tasks", "one")
	before, said := content(t, dir), rows(view(t, s, "one").State)
	gone := del(t, s, "one")
	if gone.Name != "one" || gone.Hidden || gone.Title != "T one" || gone.DeletedAt == nil || *gone.DeletedAt != "2023-11-14T22:15:00.000Z" {
		t.Errorf("%+v", gone)
	}
	if exists(dir, "") || trashNames(t, s) != "one" || indexIDs(t, root) != "two" {
		t.Errorf("trash %s, index %s", trashNames(t, s), indexIDs(t, root))
	}
	if d := cmp.Diff(before, content(t, filepath.Join(root, "trash", "one"))); d != "" {
		t.Error(d)
	}
	var trashed *TrashedError
	if _, err := s.Find(context.Background(), "one"); !errors.Is(err, ErrNotFound) || !errors.As(err, &trashed) || trashed.Name != "one" {
		t.Errorf("asked for by its id: %v", err)
	}
	hash := tree(t, root)
	for range 2 {
		must[Listing](t)(s.List(context.Background(), Filter{}))
		trashNames(t, s)
	}
	if d := cmp.Diff(hash, tree(t, root)); d != "" {
		t.Error("looking changed", d)
	}
	ref := must[Ref](t)(s.Restore(context.Background(), "one"))
	if ref.Dir != dir || trashNames(t, s) != "" || indexIDs(t, root) != "one two" || rows(view(t, s, "one").State) != said {
		t.Errorf("%+v, trash %s, index %s", ref, trashNames(t, s), indexIDs(t, root))
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Error(d)
	}
	k := own(t, s, "one").Task // and it goes on
	commit(t, k, task.UI, uiRow(3, "more"))
	closeTask(t, k)
}

func TestDeleteTheSameIDTwice(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, text := range []string{"first", "second"} {
		k := must[*Task](t)(s.Create(context.Background(), task.Created{Task: "same", Title: text, Number: 1, CreatedAt: ts0}))
		closeTask(t, k)
		del(t, s, "same")
	}
	closeTask(t, create(t, s, "same"))
	if got := trashNames(t, s); got != "same same~2" {
		t.Fatal(got)
	}
	for _, name := range []string{"same", "same~2"} {
		if _, err := s.Restore(context.Background(), name); !errors.Is(err, ErrTaken) {
			t.Errorf("%s over one that is there: %v", name, err)
		}
	}
	del(t, s, "same")
	must[Ref](t)(s.Restore(context.Background(), "same~2"))
	if got := view(t, s, "same").Summary.Title; got != "second" || trashNames(t, s) != "same same~3" {
		t.Errorf("%s, trash %s", got, trashNames(t, s))
	}
}

// A task in an editor's storage is hidden; its folder is not touched, and what the
// editor does with it meanwhile is seen when it comes back.
func TestDeleteAForeignTask(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	root := t.TempDir()
	s := open(t, root, storage)
	label(t, s, "theirs", Labels{Title: ptr("named here")})
	before := tree(t, storage)
	gone := del(t, s, "theirs")
	if !gone.Hidden || gone.Title != "named here" || gone.Path != dir || !strings.HasSuffix(gone.Name, ":theirs") {
		t.Errorf("%+v", gone)
	}
	l := must[Listing](t)(s.List(context.Background(), Filter{Empty: true}))
	if len(l.Items) > 0 || l.Sources[1].Tasks != 0 || trashNames(t, s) != gone.Name {
		t.Errorf("%+v, trash %s", l, trashNames(t, s))
	}
	if _, err := s.Find(context.Background(), gone.Name); !errors.As(err, new(*TrashedError)) {
		t.Error(err)
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Error(d)
	}
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "done so far"), uiRow(3, "the editor went on")))
	must[Ref](t)(s.Restore(context.Background(), "theirs"))
	if got := listed(t, s, "theirs"); got.Messages.UI != 3 || got.Title != "named here" || trashNames(t, s) != "" {
		t.Errorf("%+v", got)
	}
	// It can be found in the trash when its storage is not named any more.
	del(t, s, "theirs")
	alone := open(t, root)
	found := must[[]Trashed](t)(alone.Trash(context.Background()))
	if len(found) != 1 || found[0].Path != dir || found[0].Title != "named here" {
		t.Fatalf("%+v", found)
	}
	must[Ref](t)(alone.Restore(context.Background(), found[0].Word()))
	listed(t, s, "theirs")
}

// What somebody owns is not deleted: the task stands as it was.
func TestDeleteABusyTask(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	s := open(t, t.TempDir(), storage)
	closeTask(t, create(t, s, "mine"))
	for _, id := range []string{"mine", "theirs"} {
		k, before := own(t, s, id).Task, trashNames(t, s)
		ref := must[Ref](t)(s.Find(context.Background(), id))
		var busy *journal.BusyError
		if _, err := s.Delete(context.Background(), ref); !errors.As(err, &busy) || busy.Holder.PID != os.Getpid() {
			t.Errorf("%s: %v", id, err)
		}
		commit(t, k, task.UI, uiRow(8, "it goes on"))
		closeTask(t, k)
		if got := listed(t, s, id); !slices.Contains([]int{2, 3}, got.Messages.UI) || trashNames(t, s) != before {
			t.Errorf("%s: %+v", id, got)
		}
		del(t, s, id)
	}
}

// What cannot be moved stays where it is, whole, and the error says where it failed.
func TestDeleteThatFails(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	ref := must[Ref](t)(s.Find(context.Background(), "mine"))
	said := rows(view(t, s, "mine").State)
	write(t, root, "trash", "a file stands here")
	var bad *RootError
	if _, err := s.Delete(context.Background(), ref); !errors.As(err, &bad) || bad.Path != root {
		t.Error(err)
	}
	check(t, os.Remove(filepath.Join(root, "trash")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Delete(ctx, ref); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check(t, os.RemoveAll(filepath.Join(root, "overlay")))
	write(t, root, "overlay", "and one here")
	if _, err := s.Delete(context.Background(), ref); err == nil || !strings.Contains(err.Error(), "overlay") {
		t.Error(err)
	}
	if got := rows(view(t, s, "mine").State); got != said {
		t.Error(got)
	}
	listed(t, s, "mine")
}

// Who found a task before it was deleted does not bring back an empty one.
func TestOwnAfterDelete(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	ref := must[Ref](t)(s.Find(context.Background(), "mine"))
	del(t, s, "mine")
	_, ownErr := s.Own(context.Background(), ref)
	_, takeErr := s.takeFrom(context.Background(), ref, true) // deleted between the look and the lock
	_, labelErr := s.Label(context.Background(), ref, Labels{Pinned: ptr(true)})
	_, again := s.Delete(context.Background(), ref)
	for _, err := range []error{ownErr, takeErr, labelErr, again} {
		if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	if exists(root, "tasks/mine") || trashNames(t, s) != "mine" {
		t.Error("it came back")
	}
}

func TestTrashThatIsNotThere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	s := open(t, root)
	if got := trashNames(t, s); got != "" {
		t.Error(got)
	}
	_, err := s.Trashed(context.Background(), "nothing")
	if !errors.Is(err, ErrNotFound) || exists(root, "") {
		t.Errorf("%v, or looking made the root", err)
	}
}

func TestNamesInTheTrash(t *testing.T) {
	storage, _ := rooStorage(t, "abc-111")
	s := open(t, t.TempDir(), storage)
	for _, id := range []string{"abc-111", "abc-222", "xyz"} {
		closeTask(t, create(t, s, id))
	}
	theirs := ""
	for _, r := range must[[]Ref](t)(s.Refs(context.Background())) {
		x := must[Trashed](t)(s.Delete(context.Background(), r))
		if x.Hidden {
			theirs = x.Name
		}
	}
	for given, want := range map[string]string{
		"abc-222": "abc-222", "222": "abc-222", "xyz": "xyz", "roost:abc-111": "abc-111", theirs: theirs,
		"abc": "many", "abc-111": "many", "111": "many", "yz": "none", "other:xyz": "none", "": "none",
	} {
		got, err := s.Trashed(context.Background(), given)
		name := got.Name
		var many *AmbiguousError
		if errors.As(err, &many) {
			name = "many"
			for _, c := range many.Candidates { // each can be told apart
				if _, err := s.Trashed(context.Background(), c.Source+":"+c.ID); err != nil {
					t.Errorf("%s: %v", given, err)
				}
			}
		} else if errors.Is(err, ErrNotFound) {
			name = "none"
		}
		if name != want {
			t.Errorf("%q: %s (%v), want %s", given, name, err, want)
		}
	}
}

// A link in our root moves; what it leads to is nobody's to move or write.
func TestDeleteALink(t *testing.T) {
	root := t.TempDir()
	_, dir := rooStorage(t, "target")
	check(t, os.MkdirAll(filepath.Join(root, "tasks"), 0o700))
	if err := os.Symlink(dir, filepath.Join(root, "tasks", "link")); err != nil {
		t.Skip(err)
	}
	s := open(t, root)
	before := tree(t, dir)
	del(t, s, "link")
	if d := cmp.Diff(before, tree(t, dir)); d != "" || trashNames(t, s) != "link" {
		t.Errorf("trash %s; %s", trashNames(t, s), d)
	}
	must[Trashed](t)(s.Purge(context.Background(), "link"))
	if d := cmp.Diff(before, tree(t, dir)); d != "" || trashNames(t, s) != "" {
		t.Errorf("trash %s; %s", trashNames(t, s), d)
	}
}

// A folder of Roo's that was copied into our root has no journal yet, and a name
// that cannot be an id is nothing that we make paths of.
func TestDeleteFoldersWithoutAJournal(t *testing.T) {
	root := t.TempDir()
	tasks := filepath.Join(root, "tasks")
	for _, id := range []string{"copied", "odd name"} {
		_, dir := rooStorage(t, id)
		check(t, os.CopyFS(filepath.Join(tasks, id), os.DirFS(dir)))
	}
	s := open(t, root)
	before := content(t, filepath.Join(tasks, "copied"))
	said := rows(view(t, s, "copied").State)
	del(t, s, "copied")
	must[Ref](t)(s.Restore(context.Background(), "copied"))
	if d := cmp.Diff(before, content(t, filepath.Join(tasks, "copied"))); d != "" || rows(view(t, s, "copied").State) != said {
		t.Error(d)
	}
	if got := own(t, s, "copied"); got.Task.State().Adopted == nil {
		t.Error("it was not adopted")
	} else {
		closeTask(t, got.Task)
	}
	ref := must[Ref](t)(s.Find(context.Background(), "odd name"))
	if _, err := s.Delete(context.Background(), ref); err == nil || !strings.Contains(err.Error(), "import it") || !exists(ref.Dir, "") {
		t.Error(err)
	}
}

func TestPurge(t *testing.T) {
	storage, _ := rooStorage(t, "theirs")
	root := t.TempDir()
	s := open(t, root, storage)
	closeTask(t, create(t, s, "mine"))
	closeTask(t, own(t, s, "theirs").Task)
	theirs := must[Ref](t)(s.Find(context.Background(), "theirs"))
	before := tree(t, storage)
	if _, err := s.Purge(context.Background(), "mine"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what is not in the trash: %v", err)
	}
	del(t, s, "mine")
	del(t, s, "theirs")
	for _, id := range []string{"mine", "theirs"} {
		must[Trashed](t)(s.Purge(context.Background(), id))
	}
	left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(root, "trash")))
	if len(left) > 0 || exists(theirs.Log, "") || trashNames(t, s) != "" {
		t.Errorf("left: %v, trash %s", left, trashNames(t, s))
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Error("the editor's folder:", d)
	}
	// It stays hidden, and can be shown again while the editor has it.
	if got := must[Listing](t)(s.List(context.Background(), Filter{})).Items; len(got) > 0 {
		t.Errorf("listed: %+v", got)
	}
	must[Ref](t)(s.Restore(context.Background(), "theirs"))
	if got := listed(t, s, "theirs"); got.Messages.UI != 2 {
		t.Errorf("%+v", got)
	}
	if got := fmt.Sprint(must[[]Ref](t)(s.Refs(context.Background()))); strings.Contains(got, "mine") {
		t.Error(got)
	}
}

// A task that is moved while a list is made is not shown as a damaged one; one whose
// whole storage went still is, because it is not known to be gone.
func TestATaskThatGoesWhileItIsListed(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	s := open(t, t.TempDir(), storage)
	closeTask(t, create(t, s, "mine"))
	mine, theirs := must[Ref](t)(s.Find(context.Background(), "mine")), must[Ref](t)(s.Find(context.Background(), "theirs"))
	del(t, s, "mine")
	check(t, os.RemoveAll(dir))
	var all Filter
	for _, ref := range []Ref{mine, theirs} {
		if sum := s.SummaryOf(context.Background(), ref); all.keeps(sum) {
			t.Errorf("%+v", sum)
		}
	}
	check(t, os.RemoveAll(storage))
	if sum := s.SummaryOf(context.Background(), theirs); !all.keeps(sum) || len(sum.Damaged) != 1 {
		t.Errorf("%+v", sum)
	}
}

// Nobody comes to own a task between the look whether somebody does and its deletion: it
// would run, and stand in no list.
func TestNobodyTakesATaskWhileItIsHidden(t *testing.T) {
	s, _, _ := continued(t)
	ref := must[Ref](t)(s.Find(t.Context(), "live-one"))
	check(t, s.shelve(t.Context(), func(m Marks, keep func(...mark) error) error {
		_, err := s.hide(t.Context(), ref, m, 0, func(list ...mark) error {
			var busy *journal.BusyError
			if o, err := s.Own(t.Context(), ref); !errors.As(err, &busy) {
				t.Errorf("it was taken meanwhile: %v", err)
				if err == nil {
					closeTask(t, o.Task)
				}
			}
			return keep(list...)
		})
		return err
	}))
	if _, err := s.Find(t.Context(), "live-one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is not hidden: %v", err)
	}
}
