package trash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/drafts"
	"github.com/roost-dev/roost/store/overlay"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// indexIDs are the ids that Roo's index of our own root names.
func indexIDs(t testing.TB, root string) string {
	t.Helper()
	var ids []string
	for _, e := range storetest.Must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks"))).Entries {
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
	for path, sum := range storetest.Tree(t, dir) {
		name := storetest.Must[string](t)(filepath.Rel(dir, path))
		if name != "." && !strings.HasPrefix(name, "journal.") {
			out[name] = sum
		}
	}
	return out
}

func TestDeleteAndRestoreAnOwnTask(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	for _, id := range []string{"one", "two"} {
		k := storetest.Create(t, s, id)
		storetest.Commit(t, k, task.UI, storetest.UIRow(2, strings.Repeat("long ", 80<<10))) // in a blob
		storetest.Close(t, k)
	}
	dir := filepath.Join(root, "tasks", "one")
	before, said := content(t, dir), storetest.Rows(storetest.View(t, s, "one").State)
	gone := storetest.Delete(t, s, "one")
	if gone.Name != "one" || gone.Hidden || gone.Title != "T one" || gone.DeletedAt == nil || *gone.DeletedAt != "2023-11-14T22:15:00.000Z" {
		t.Errorf(`got %+v, want gone.Name = "one" and not gone.Hidden and gone.Title = "T one" and gone.DeletedAt != nil and *gone.DeletedAt = "2023-11-14T22:15:00.000Z"`,
			gone)
	}
	if storetest.Exists(dir, "") || storetest.TrashNames(t, s) != "one" || indexIDs(t, root) != "two" {
		t.Errorf("trash %s, index %s", storetest.TrashNames(t, s), indexIDs(t, root))
	}
	if d := cmp.Diff(before, content(t, filepath.Join(root, "trash", "one"))); d != "" {
		t.Error(d)
	}
	for _, given := range []string{"one", "roost:one"} {
		var trashed *store.TrashedError
		if _, err := s.Find(context.Background(), given); !errors.Is(err, store.ErrNotFound) || !errors.As(err, &trashed) || trashed.Name != "one" {
			t.Errorf("asked for by %s: got %v, want ErrNotFound and a TrashedError of one", given, err)
		}
	}
	hash := storetest.Tree(t, root)
	for range 2 {
		storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{}))
		storetest.TrashNames(t, s)
	}
	if d := cmp.Diff(hash, storetest.Tree(t, root)); d != "" {
		t.Error("looking changed", d)
	}
	ref := storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "one"))
	if ref.Dir != dir || storetest.TrashNames(t, s) != "" || indexIDs(t, root) != "one two" || storetest.Rows(storetest.View(t, s, "one").State) != said {
		t.Errorf("%+v, trash %s, index %s", ref, storetest.TrashNames(t, s), indexIDs(t, root))
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Error(d)
	}
	k := storetest.Own(t, s, "one").Task // and it goes on
	storetest.Commit(t, k, task.UI, storetest.UIRow(3, "more"))
	storetest.Close(t, k)
}

func TestDeleteTheSameIDTwice(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	for _, text := range []string{"first", "second"} {
		k := storetest.Must[*store.Task](t)(s.Create(context.Background(), task.Created{Task: "same", Title: text, Number: 1, CreatedAt: storetest.TS0}))
		storetest.Close(t, k)
		storetest.Delete(t, s, "same")
	}
	storetest.Close(t, storetest.Create(t, s, "same"))
	if got := storetest.TrashNames(t, s); got != "same same~2" {
		t.Fatal(got)
	}
	for _, name := range []string{"same", "same~2"} {
		if _, err := trash.Restore(context.Background(), s, name); !errors.Is(err, trash.ErrTaken) {
			t.Errorf("%s over one that is there: %v", name, err)
		}
	}
	storetest.Delete(t, s, "same")
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "same~2"))
	if got := storetest.View(t, s, "same").Summary.Title; got != "second" || storetest.TrashNames(t, s) != "same same~3" {
		t.Errorf("%s, trash %s", got, storetest.TrashNames(t, s))
	}
}

// A task in an editor's storage is hidden; its folder is not touched, and what the
// editor does with it meanwhile is seen when it comes back.
func TestDeleteAForeignTask(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	storetest.Label(t, s, "theirs", labels.Change{Title: new("named here")})
	before := storetest.Tree(t, storage)
	gone := storetest.Delete(t, s, "theirs")
	if !gone.Hidden || gone.Title != "named here" || gone.Path != dir || !strings.HasSuffix(gone.Name, ":theirs") {
		t.Errorf(`got %+v, want gone.Hidden and gone.Title = "named here" and gone.Path = dir and strings.HasSuffix(gone.Name, ":theirs")`,
			gone)
	}
	l := storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{TaskFilter: api.TaskFilter{Empty: true}}))
	if len(l.Items) > 0 || l.Sources[1].Tasks != 0 || storetest.TrashNames(t, s) != gone.Name {
		t.Errorf("%+v, trash %s", l, storetest.TrashNames(t, s))
	}
	if _, err := s.Find(context.Background(), gone.Name); !errors.As(err, new(*store.TrashedError)) {
		t.Error(err)
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
		t.Error(d)
	}
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far"), storetest.UIRow(3, "the editor went on")))
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "theirs"))
	if got := storetest.Listed(t, s, "theirs"); got.Messages.UI != 3 || got.Title != "named here" || storetest.TrashNames(t, s) != "" {
		t.Errorf(`got %+v, want got.Messages.UI = 3 and got.Title = "named here" and storetest.TrashNames(t, s) = ""`,
			got)
	}
	// It can be found in the trash when its storage is not named any more.
	storetest.Delete(t, s, "theirs")
	alone := storetest.Open(t, root)
	found := storetest.Must[[]api.DeletedTask](t)(trash.List(context.Background(), alone))
	if len(found) != 1 || found[0].Path != dir || found[0].Title != "named here" {
		t.Fatalf("got %+v, want len(found) = 1 and found[0].Path = dir and found[0].Title = \"named here\"", found)
	}
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), alone, found[0].QualifiedName()))
	storetest.Listed(t, s, "theirs")
}

// What somebody owns is not deleted: the task stands as it was.
func TestDeleteABusyTask(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	s := storetest.Open(t, t.TempDir(), storage)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	for _, id := range []string{"mine", "theirs"} {
		k, before := storetest.Own(t, s, id).Task, storetest.TrashNames(t, s)
		ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), id))
		var busy *journal.BusyError
		if _, err := trash.Delete(context.Background(), s, ref); !errors.As(err, &busy) || busy.Holder.PID != os.Getpid() {
			t.Errorf("%s: got %v, want errors.As(err, &busy) and busy.Holder.PID = os.Getpid()", id, err)
		}
		storetest.Commit(t, k, task.UI, storetest.UIRow(8, "it goes on"))
		storetest.Close(t, k)
		if got := storetest.Listed(t, s, id); !slices.Contains([]int{2, 3}, got.Messages.UI) || storetest.TrashNames(t, s) != before {
			t.Errorf("%s: got %+v, want slices.Contains([]int{2, 3}, got.Messages.UI) and storetest.TrashNames(t, s) = before",
				id, got)
		}
		storetest.Delete(t, s, id)
	}
}

// What cannot be moved stays where it is, whole, and the error says where it failed.
func TestDeleteThatFails(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "mine"))
	said := storetest.Rows(storetest.View(t, s, "mine").State)
	storetest.Write(t, root, "trash", "a file stands here")
	var bad *store.RootError
	if _, err := trash.Delete(context.Background(), s, ref); !errors.As(err, &bad) || bad.Path != root {
		t.Error(err)
	}
	storetest.Check(t, os.Remove(filepath.Join(root, "trash")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := trash.Delete(ctx, s, ref); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	storetest.Check(t, os.RemoveAll(filepath.Join(root, "overlay")))
	storetest.Write(t, root, "overlay", "and one here")
	if _, err := trash.Delete(context.Background(), s, ref); err == nil || !strings.Contains(err.Error(), "overlay") {
		t.Error(err)
	}
	if got := storetest.Rows(storetest.View(t, s, "mine").State); got != said {
		t.Error(got)
	}
	storetest.Listed(t, s, "mine")
}

// The history index is derived: that it cannot be written does not make a deletion fail that has happened, nor a
// restore.
func TestDeleteAndRestoreWithoutTheIndex(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	index := filepath.Join(root, "tasks", roofmt.IndexName)
	storetest.Check(t, os.RemoveAll(index))
	storetest.Check(t, os.MkdirAll(filepath.Join(index, "in the way"), 0o700))
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "mine"))
	if d, err := trash.Delete(context.Background(), s, ref); err != nil || d.Name != "mine" {
		t.Errorf("delete: got %+v, %v, want the deleted task", d, err)
	}
	if back, err := trash.Restore(context.Background(), s, "mine"); err != nil || back.ID != "mine" {
		t.Errorf("restore: got %+v, %v, want the task", back, err)
	}
	storetest.Listed(t, s, "mine")
}

// Who found a task before it was deleted does not bring back an empty one.
func TestOwnAfterDelete(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "mine"))
	storetest.Delete(t, s, "mine")
	_, ownErr := s.Own(context.Background(), ref)
	_, labelErr := labels.Set(context.Background(), s, ref, labels.Change{Pinned: new(true)})
	_, again := trash.Delete(context.Background(), s, ref)
	for _, err := range []error{ownErr, labelErr, again} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}
	if storetest.Exists(root, "tasks/mine") || storetest.TrashNames(t, s) != "mine" {
		t.Error("it came back")
	}
}

func TestTrashThatIsNotThere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	s := storetest.Open(t, root)
	if got := storetest.TrashNames(t, s); got != "" {
		t.Error(got)
	}
	_, err := trash.Find(context.Background(), s, "nothing")
	if !errors.Is(err, store.ErrNotFound) || storetest.Exists(root, "") {
		t.Errorf("%v, or looking made the root", err)
	}
}

func TestNamesInTheTrash(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "abc-111")
	s := storetest.Open(t, t.TempDir(), storage)
	for _, id := range []string{"abc-111", "abc-222", "xyz"} {
		storetest.Close(t, storetest.Create(t, s, id))
	}
	theirs := ""
	for _, r := range storetest.Must[[]store.Ref](t)(s.Refs(context.Background())) {
		x := storetest.Must[api.DeletedTask](t)(trash.Delete(context.Background(), s, r))
		if x.Hidden {
			theirs = x.Name
		}
	}
	for given, want := range map[string]string{
		"abc-222": "abc-222", "222": "abc-222", "xyz": "xyz", "roost:abc-111": "abc-111", theirs: theirs,
		"abc": "many", "abc-111": "many", "111": "many", "yz": "none", "other:xyz": "none", "": "none",
	} {
		got, err := trash.Find(context.Background(), s, given)
		name := got.Name
		var many *store.AmbiguousError
		if errors.As(err, &many) {
			name = "many"
			for _, c := range many.Candidates { // each can be told apart
				if _, err := trash.Find(context.Background(), s, c.Source+":"+c.ID); err != nil {
					t.Errorf("%s: got %v, want no error", given, err)
				}
			}
		} else if errors.Is(err, store.ErrNotFound) {
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
	_, dir := storetest.RooStorage(t, "target")
	storetest.Check(t, os.MkdirAll(filepath.Join(root, "tasks"), 0o700))
	if err := os.Symlink(dir, filepath.Join(root, "tasks", "link")); err != nil {
		t.Skip(err)
	}
	s := storetest.Open(t, root)
	before := storetest.Tree(t, dir)
	storetest.Delete(t, s, "link")
	if d := cmp.Diff(before, storetest.Tree(t, dir)); d != "" || storetest.TrashNames(t, s) != "link" {
		t.Errorf("trash %s; %s", storetest.TrashNames(t, s), d)
	}
	storetest.Must[api.DeletedTask](t)(trash.Purge(context.Background(), s, "link"))
	if d := cmp.Diff(before, storetest.Tree(t, dir)); d != "" || storetest.TrashNames(t, s) != "" {
		t.Errorf("trash %s; %s", storetest.TrashNames(t, s), d)
	}
}

// A folder of Roo's that was copied into our root has no journal yet, and a name
// that cannot be an id is nothing that we make paths of.
func TestDeleteFoldersWithoutAJournal(t *testing.T) {
	root := t.TempDir()
	tasks := filepath.Join(root, "tasks")
	for _, id := range []string{"copied", "odd name"} {
		_, dir := storetest.RooStorage(t, id)
		storetest.Check(t, os.CopyFS(filepath.Join(tasks, id), os.DirFS(dir)))
	}
	s := storetest.Open(t, root)
	before := content(t, filepath.Join(tasks, "copied"))
	said := storetest.Rows(storetest.View(t, s, "copied").State)
	storetest.Delete(t, s, "copied")
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "copied"))
	if d := cmp.Diff(before, content(t, filepath.Join(tasks, "copied"))); d != "" || storetest.Rows(storetest.View(t, s, "copied").State) != said {
		t.Error(d)
	}
	if got := storetest.Own(t, s, "copied"); got.Task.State().Adopted == nil {
		t.Error("it was not adopted")
	} else {
		storetest.Close(t, got.Task)
	}
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "odd name"))
	if _, err := trash.Delete(context.Background(), s, ref); !errors.Is(err, store.ErrFolderName) || !storetest.Exists(ref.Dir, "") {
		t.Errorf("got %v, want %v and the folder as it was", err, store.ErrFolderName)
	}
}

func TestPurge(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "theirs")
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	storetest.Close(t, storetest.Own(t, s, "theirs").Task)
	theirs := storetest.Must[store.Ref](t)(s.Find(context.Background(), "theirs"))
	before := storetest.Tree(t, storage)
	if _, err := trash.Purge(context.Background(), s, "mine"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not in the trash: %v", err)
	}
	storetest.Delete(t, s, "mine")
	storetest.Delete(t, s, "theirs")
	draft := func() string {
		return storetest.Must[api.Draft](t)(drafts.Of(s).Read(t.Context(), theirs.Source+":theirs")).Text
	}
	storetest.Must[api.Draft](t)(drafts.Of(s).Change(t.Context(), api.Draft{Task: theirs.Source + ":theirs", Text: "begun"}, "", nil))
	log := storetest.Must[journal.Owner](t)(s.LockJournal(t.Context(), theirs, 0))
	var busy *journal.BusyError
	if _, err := trash.Purge(t.Context(), s, "theirs"); !errors.As(err, &busy) || draft() != "begun" {
		t.Errorf("a refused purge: got %v and the draft %q, want a *journal.BusyError and the draft as it was", err, draft())
	}
	storetest.Check(t, log.Close())
	for _, id := range []string{"mine", "theirs"} {
		storetest.Must[api.DeletedTask](t)(trash.Purge(context.Background(), s, id))
	}
	if draft() != "" {
		t.Errorf("got the draft %q after the purge, want none", draft())
	}
	left := storetest.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(root, "trash")))
	if len(left) > 0 || storetest.Exists(theirs.Log, "") || storetest.TrashNames(t, s) != "" {
		t.Errorf("left: %v, trash %s", left, storetest.TrashNames(t, s))
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
		t.Error("the editor's folder:", d)
	}
	// It stays hidden, and can be shown again while the editor has it.
	if got := storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{})).Items; len(got) > 0 {
		t.Errorf("listed: %+v", got)
	}
	storetest.Must[store.Ref](t)(trash.Restore(context.Background(), s, "theirs"))
	if got := storetest.Listed(t, s, "theirs"); got.Messages.UI != 2 {
		t.Errorf("got %+v, want got.Messages.UI = 2", got)
	}
	if got := fmt.Sprint(storetest.Must[[]store.Ref](t)(s.Refs(context.Background()))); strings.Contains(got, "mine") {
		t.Error(got)
	}
}

// A fork shares the file of the task that it began with, which went on in it.
func TestPurgeLeavesForksOnlyWhatTheyShare(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	k := storetest.Create(t, s, "mine")
	storetest.Commit(t, k, task.UI, storetest.UIRow(2, "shared"))
	storetest.Close(t, k)
	fork := func(id string) (forked string) {
		did, finish, err := history.Fork(t.Context(), s, storetest.Must[store.Ref](t)(s.Find(t.Context(), id)), history.ForkOptions{})
		if err = errors.Join(err, finish(t.Context())); err != nil {
			t.Fatal(err)
		}
		return did.ID
	}
	first := fork("mine")
	second := fork(first)
	k = storetest.Own(t, s, "mine").Task
	storetest.Commit(t, k, task.UI, storetest.UIRow(3, "said later"))
	storetest.Close(t, k)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.Link(filepath.Join(root, "tasks", "mine", store.JournalName), backup); err != nil {
		t.Skip("the file system has no links:", err)
	}
	storetest.Delete(t, s, "mine")
	before := storetest.Must[[]byte](t)(os.ReadFile(backup))
	storetest.Must[api.DeletedTask](t)(trash.Purge(t.Context(), s, "mine"))
	for path := range storetest.Tree(t, root) {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("said later")) {
			t.Errorf("%s holds words of the purged task that came after the fork", path)
		}
	}
	for _, id := range []string{first, second} {
		v := storetest.Must[*store.View](t)(s.ReadWhole(t.Context(), storetest.Must[store.Ref](t)(s.Find(t.Context(), id))))
		if n, p := len(v.State.UI()), v.State.Problems; n != 2 || len(p) > 0 {
			t.Errorf("fork %s: got %d messages, damage %v; want 2, whole", id, n, p)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := storetest.Must[[]byte](t)(os.ReadFile(backup)); !bytes.Equal(got, before) {
		t.Errorf("a backup that is a further name of the file: got %d bytes, want %d", len(got), len(before))
	}
}

// A task that is moved while a list is made is not shown as a damaged one; one whose
// whole storage went still is, because it is not known to be gone.
func TestATaskThatGoesWhileItIsListed(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "theirs")
	s := storetest.Open(t, t.TempDir(), storage)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	mine, theirs := storetest.Must[store.Ref](t)(s.Find(context.Background(), "mine")), storetest.Must[store.Ref](t)(s.Find(context.Background(), "theirs"))
	storetest.Delete(t, s, "mine")
	storetest.Check(t, os.RemoveAll(dir))
	for _, ref := range []store.Ref{mine, theirs} {
		if sum := s.SummaryOf(context.Background(), ref); !sum.Gone {
			t.Errorf("got %+v, want sum.Gone", sum)
		}
	}
	storetest.Check(t, os.RemoveAll(storage))
	if sum := s.SummaryOf(context.Background(), theirs); sum.Gone || len(sum.Damaged) != 1 {
		t.Errorf("got %+v, want not sum.Gone and len(sum.Damaged) = 1", sum)
	}
}

// Nobody comes to own a task between the look whether somebody does and its "delete": it
// would run, and stand in no list.
func TestNobodyTakesATaskWhileItIsHidden(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "live-one")
	s := storetest.Open(t, t.TempDir(), storage)
	storetest.Close(t, storetest.Own(t, s, "live-one").Task)
	ref := storetest.Must[store.Ref](t)(s.Find(t.Context(), "live-one"))
	storetest.Check(t, s.ChangeOverlay(t.Context(), func(table overlay.Table, add overlay.Append) error {
		_, err := trash.Hide(t.Context(), s, ref, table, func(list ...overlay.Entry) error {
			var busy *journal.BusyError
			if o, err := s.Own(t.Context(), ref); !errors.As(err, &busy) {
				t.Errorf("it was taken meanwhile: %v", err)
				if err == nil {
					storetest.Close(t, o.Task)
				}
			}
			return add(list...)
		})
		return err
	}))
	if _, err := s.Find(t.Context(), "live-one"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is not hidden: %v", err)
	}
}
