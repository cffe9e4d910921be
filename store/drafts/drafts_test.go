package drafts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store/drafts"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.StopShared()
	os.Exit(code)
}

// each runs a test for drafts in a folder and for those in a database. open opens the same ones each time, as another
// process has them.
func each(t *testing.T, test func(t *testing.T, open func() drafts.Drafts)) {
	t.Parallel()
	t.Run("a folder", func(t *testing.T) {
		root := t.TempDir()
		test(t, func() drafts.Drafts { return drafts.Of(storetest.Open(t, root)) })
	})
	t.Run("a database", func(t *testing.T) {
		url := pgtest.Shared(t).Database(t)
		storetest.Check(t, database.Migrate(t.Context(), url))
		test(t, func() drafts.Drafts {
			db := storetest.Must[*database.DB](t)(database.Open(t.Context(), url))
			t.Cleanup(db.Close)
			return drafts.InDatabase(db)
		})
	})
}

// Of several that write over the same draft, also in several processes, one succeeds and the others learn of it.
func TestOneOfManyWins(t *testing.T) {
	each(t, func(t *testing.T, open func() drafts.Drafts) {
		base := ""
		for round := range 5 {
			var wait sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				s := open()
				wait.Go(func() {
					_, errs[i] = s.Change(t.Context(), api.Draft{Task: "roost:a", Text: fmt.Sprint(round, " ", i)}, base, nil)
				})
			}
			wait.Wait()
			won := -1
			for i, err := range errs {
				switch {
				case err == nil && won < 0:
					won = i
				case err == nil:
					t.Errorf("round %d: %d and %d both won", round, won, i)
				case !errors.Is(err, drafts.ErrMoved):
					t.Errorf("round %d: got %v, want ErrMoved", round, err)
				}
			}
			d := storetest.Must[api.Draft](t)(open().Read(t.Context(), "roost:a"))
			if want := fmt.Sprint(round, " ", won); d.Text != want {
				t.Errorf("round %d: got %q, want %q", round, d.Text, want)
			}
			base = d.Revision
		}
	})
}

// A draft comes back as it was written, whatever its text; the same change twice is one, and only the draft that was read
// is removed.
func TestADraftIsKept(t *testing.T) {
	each(t, func(t *testing.T, open func() drafts.Drafts) {
		s, other := open(), open()
		d := storetest.Must[api.Draft](t)(s.Read(t.Context(), ""))
		if d.Revision != "" || d.Images == nil {
			t.Errorf("got %+v, want an empty draft", d)
		}
		written := api.Draft{Text: "a\x00b \u2028 <é>", Key: "k"}
		first := storetest.Must[api.Draft](t)(s.Change(t.Context(), written, "", nil))
		again := storetest.Must[api.Draft](t)(other.Change(t.Context(), written, "", nil))
		if got := storetest.Must[api.Draft](t)(other.Read(t.Context(), "")); got.Text != written.Text || got.Key != "k" ||
			got.Revision != first.Revision || again.Revision != first.Revision || got.Changed == nil || *got.Changed != *first.Changed {
			t.Errorf("got %+v and %+v, want %+v", got, again, first)
		}
		is, err := s.Change(t.Context(), api.Draft{Text: "x"}, "", nil)
		if !errors.Is(err, drafts.ErrMoved) || is.Text != written.Text {
			t.Errorf("a change of another draft: got %+v, %v, want ErrMoved and the draft", is, err)
		}
		if err := s.Remove(t.Context(), "", "another"); !errors.Is(err, drafts.ErrMoved) {
			t.Errorf("the removal of another draft: got %v, want ErrMoved", err)
		}
		second := storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Text: "x"}, first.Revision, nil))
		storetest.Check(t, other.Remove(t.Context(), "", second.Revision))
		storetest.Check(t, s.Remove(t.Context(), "", second.Revision))
		third := storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Text: "y"}, "", nil))
		if gone := storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{}, third.Revision, nil)); gone.Revision != "" {
			t.Errorf("an empty change: got %+v, want no draft", gone)
		}
		if d := storetest.Must[api.Draft](t)(other.Read(t.Context(), "")); d.Revision != "" {
			t.Errorf("got %+v, want no draft", d)
		}
	})
}

// An image stays while the draft names it, is compared with its name, and a name is no path.
func TestImages(t *testing.T) {
	each(t, func(t *testing.T, open func() drafts.Drafts) {
		s := open()
		one, two := []byte("one"), []byte("two")
		images := map[string]drafts.Image{drafts.Name(one): {Media: "image/png", Bytes: one}, drafts.Name(two): {Media: "image/gif", Bytes: two}}
		named := func(list ...[]byte) (out []api.DraftImage) {
			for _, i := range list {
				out = append(out, api.DraftImage{Name: drafts.Name(i)})
			}
			return out
		}
		if _, err := s.Change(t.Context(), api.Draft{Images: named(one)}, "", nil); !errors.Is(err, drafts.ErrNoImage) {
			t.Errorf("an image that is not there: got %v, want ErrNoImage", err)
		}
		d := storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Images: named(one, two)}, "", images))
		if got, err := open().ReadImage(t.Context(), "", drafts.Name(one)); err != nil || string(got.Bytes) != "one" || got.Media != "image/png" {
			t.Errorf("got %+v, %v, want the first image", got, err)
		}
		d = storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Images: named(two)}, d.Revision, nil))
		if got := d.Images[0]; got.Media != "image/gif" || got.Bytes != 3 {
			t.Errorf("got %+v, want the second image as it was", got)
		}
		if _, err := s.ReadImage(t.Context(), "", drafts.Name(one)); !errors.Is(err, drafts.ErrNoImage) {
			t.Errorf("an image that is named no more: got %v, want ErrNoImage", err)
		}
		for _, name := range []string{"", "sha256:", "draft.json", "../lock", "sha256:../draft.json"} {
			if _, err := s.ReadImage(t.Context(), "", name); !errors.Is(err, drafts.ErrNoImage) {
				t.Errorf("%q: got %v, want ErrNoImage", name, err)
			}
		}
		storetest.Check(t, s.Remove(t.Context(), "", d.Revision))
		if _, err := s.ReadImage(t.Context(), "", drafts.Name(two)); !errors.Is(err, drafts.ErrNoImage) {
			t.Errorf("an image of a draft that was removed: got %v, want ErrNoImage", err)
		}
	})
}

// An image that no draft names leaves nothing behind, and changed bytes are an error.
func TestImagesInAFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := drafts.Of(storetest.Open(t, root))
	one, two := []byte("one"), []byte("two")
	images := map[string]drafts.Image{drafts.Name(one): {Media: "image/png", Bytes: one}, drafts.Name(two): {Media: "image/gif", Bytes: two}}
	both := []api.DraftImage{{Name: drafts.Name(one)}, {Name: drafts.Name(two)}}
	d := storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Images: both}, "", images))
	d = storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Images: both[1:]}, d.Revision, nil))
	files := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "drafts", "new", "*")))
	if len(files) != 2 {
		t.Errorf("got the files %v, want the draft and one image", files)
	}
	file := filepath.Join(root, "drafts", "new", strings.TrimPrefix(drafts.Name(two), "sha256:"))
	storetest.Check(t, os.WriteFile(file, []byte("bad"), 0o600))
	if _, err := s.ReadImage(t.Context(), "", drafts.Name(two)); err == nil {
		t.Error("got changed bytes, want an error")
	}
	storetest.Check(t, s.Remove(t.Context(), "", d.Revision))
	if _, err := os.Lstat(filepath.Join(root, "drafts", "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

// An image goes with the draft, in the same transaction.
func TestImagesInADatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).Database(t)
	storetest.Check(t, database.Migrate(t.Context(), url))
	db := storetest.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	s := drafts.InDatabase(db)
	image := []byte("one")
	images := map[string]drafts.Image{drafts.Name(image): {Media: "image/png", Bytes: image}}
	count := func(want int) {
		t.Helper()
		var n int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM roost.draft_images`).Scan(&n); err != nil || n != want {
			t.Errorf("got %d images, %v, want %d", n, err, want)
		}
	}
	with := func(base string) api.Draft {
		t.Helper()
		d := api.Draft{Task: "roost:a", Images: []api.DraftImage{{Name: drafts.Name(image)}}}
		return storetest.Must[api.Draft](t)(s.Change(t.Context(), d, base, images))
	}
	d := with("")
	count(1)
	d = storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Task: "roost:a", Text: "x"}, d.Revision, nil))
	count(0)
	d = with(d.Revision)
	storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Task: "roost:a"}, d.Revision, nil))
	count(0)
	d = with("")
	storetest.Check(t, s.Remove(t.Context(), "roost:a", d.Revision))
	count(0)
}

// A purge removes the drafts of all people for a task, and those of no other task.
func TestPurge(t *testing.T) {
	each(t, func(t *testing.T, open func() drafts.Drafts) {
		s := open()
		names := []string{"roost:a", "roost:a" + drafts.Person + "p-1", "roost:ab", "roost:b" + drafts.Person + "p-1", ""}
		for _, name := range names {
			storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Task: name, Text: "begun"}, "", nil))
		}
		storetest.Check(t, s.Purge(t.Context(), "roost:a"))
		for i, name := range names {
			d := storetest.Must[api.Draft](t)(open().Read(t.Context(), name))
			// A root in a folder has no accounts, and knows its drafts by hashes of their names.
			if gone := i == 0 || i == 1 && strings.HasSuffix(t.Name(), "a_database"); (d.Text == "") != gone {
				t.Errorf("%q: got %q, want it to be gone: %t", name, d.Text, gone)
			}
		}
	})
}

// Reading makes nothing; a damaged draft is an error that names the file, and can be removed.
func TestDamagedDraft(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := drafts.Of(storetest.Open(t, root))
	if d, err := s.Read(t.Context(), "roost:a"); err != nil || d.Revision != "" {
		t.Errorf("got %+v %v, want no draft", d, err)
	}
	storetest.Check(t, s.Remove(t.Context(), "roost:a", ""))
	if _, err := os.Lstat(filepath.Join(root, "drafts")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	storetest.Must[api.Draft](t)(s.Change(t.Context(), api.Draft{Task: "roost:a", Text: "x"}, "", nil))
	file := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "drafts", "*", "draft.json")))[0]
	storetest.Check(t, os.WriteFile(file, []byte("{"), 0o600))
	if _, err := s.Read(t.Context(), "roost:a"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
	storetest.Check(t, s.Remove(t.Context(), "roost:a", ""))
	if d, err := s.Read(t.Context(), "roost:a"); err != nil || d.Revision != "" {
		t.Errorf("got %+v %v, want no draft", d, err)
	}
}
