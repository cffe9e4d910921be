package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// outOfMemory takes a file's pages out of memory, where the file system lets them go.
func outOfMemory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// A list whose files come from the disk, and are asked for ahead, says what one from memory says.
func TestAListFromTheDisk(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	var files []string
	for i := range 8 {
		dir := filepath.Join(storage, "tasks", fmt.Sprintf("task-%d", i))
		fixture.NoError(t, os.MkdirAll(dir, 0o700))
		long := strings.Repeat("words ", 8000)
		write(t, dir, roofmt.UIName, array(uiRow(i+1, long), uiRow(i+2, "more")))
		files = append(files, filepath.Join(dir, roofmt.UIName))
		if i%3 != 0 { // some have only one history
			write(t, dir, roofmt.APIName, array(apiRow(1, "user", long), apiRow(2, "assistant", "reply")))
			files = append(files, filepath.Join(dir, roofmt.APIName))
		}
	}
	first := func() []api.Summary {
		s := fixture.Must[*Store](t)(Open(Options{Root: t.TempDir(), Cache: t.TempDir(), Sources: []string{storage}}))
		return pageBy(t, s, Filter{}).Items
	}
	warm := first()
	for _, path := range files {
		fixture.NoError(t, outOfMemory(path))
	}
	if cold := first(); len(cold) != 8 || cmp.Diff(warm, cold) != "" {
		t.Errorf("%d tasks\n%s", len(cold), cmp.Diff(warm, cold))
	}
}
