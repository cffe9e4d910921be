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
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store/drafts"
)

// Of several that write over the same draft, also in several processes, one succeeds and the others learn of it.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	base := ""
	for round := range 5 {
		var wait sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			s := storetest.Open(t, root) // each as a process of its own
			wait.Go(func() {
				_, errs[i] = drafts.Change(t.Context(), s, api.Draft{Task: "roost:a", Text: fmt.Sprint(round, " ", i)}, base, nil)
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
		d := storetest.Must[api.Draft](t)(drafts.Read(storetest.Open(t, root), "roost:a"))
		if want := fmt.Sprint(round, " ", won); d.Text != want {
			t.Errorf("round %d: got %q, want %q", round, d.Text, want)
		}
		base = d.Revision
	}
}

// An image stays while the draft names it, is compared with its name, and a name is no path.
func TestImages(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := storetest.Open(t, root)
	one, two := []byte("one"), []byte("two")
	images := map[string]drafts.Image{drafts.Name(one): {Media: "image/png", Bytes: one}, drafts.Name(two): {Media: "image/gif", Bytes: two}}
	named := func(list ...[]byte) (out []api.DraftImage) {
		for _, i := range list {
			out = append(out, api.DraftImage{Name: drafts.Name(i)})
		}
		return out
	}
	if _, err := drafts.Change(t.Context(), s, api.Draft{Images: named(one)}, "", nil); !errors.Is(err, drafts.ErrNoImage) {
		t.Errorf("an image that is not there: got %v, want ErrNoImage", err)
	}
	d := storetest.Must[api.Draft](t)(drafts.Change(t.Context(), s, api.Draft{Images: named(one, two)}, "", images))
	d = storetest.Must[api.Draft](t)(drafts.Change(t.Context(), s, api.Draft{Images: named(two)}, d.Revision, nil))
	if got := d.Images[0]; got.Media != "image/gif" || got.Bytes != 3 {
		t.Errorf("got %+v, want the second image as it was", got)
	}
	if _, err := drafts.ReadImage(s, "", drafts.Name(one)); !errors.Is(err, drafts.ErrNoImage) {
		t.Errorf("an image that is named no more: got %v, want ErrNoImage", err)
	}
	for _, name := range []string{"", "sha256:", "draft.json", "../lock", "sha256:../draft.json"} {
		if _, err := drafts.ReadImage(s, "", name); !errors.Is(err, drafts.ErrNoImage) {
			t.Errorf("%q: got %v, want ErrNoImage", name, err)
		}
	}
	files := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "drafts", "new", "*")))
	if len(files) != 2 {
		t.Errorf("got the files %v, want the draft and one image", files)
	}
	file := filepath.Join(root, "drafts", "new", strings.TrimPrefix(drafts.Name(two), "sha256:"))
	storetest.Check(t, os.WriteFile(file, []byte("bad"), 0o600))
	if _, err := drafts.ReadImage(s, "", drafts.Name(two)); err == nil {
		t.Error("got changed bytes, want an error")
	}
	storetest.Check(t, drafts.Remove(t.Context(), s, "", d.Revision))
	if _, err := os.Lstat(filepath.Join(root, "drafts", "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

// Reading makes nothing; a damaged draft is an error that names the file, and can be removed.
func TestDamagedDraft(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := storetest.Open(t, root)
	if d, err := drafts.Read(s, "roost:a"); err != nil || d.Revision != "" {
		t.Errorf("got %+v %v, want no draft", d, err)
	}
	storetest.Check(t, drafts.Remove(t.Context(), s, "roost:a", ""))
	if _, err := os.Lstat(filepath.Join(root, "drafts")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	storetest.Must[api.Draft](t)(drafts.Change(t.Context(), s, api.Draft{Task: "roost:a", Text: "x"}, "", nil))
	file := storetest.Must[[]string](t)(filepath.Glob(filepath.Join(root, "drafts", "*", "draft.json")))[0]
	storetest.Check(t, os.WriteFile(file, []byte("{"), 0o600))
	if _, err := drafts.Read(s, "roost:a"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
	storetest.Check(t, drafts.Remove(t.Context(), s, "roost:a", ""))
	if d, err := drafts.Read(s, "roost:a"); err != nil || d.Revision != "" {
		t.Errorf("got %+v %v, want no draft", d, err)
	}
}
