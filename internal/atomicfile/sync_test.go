package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The content of a file is durable before the file has its name, and the name is durable when the write returns. A file
// whose content cannot be made durable gets no name, and leaves nothing.
func TestWritesAreSyncedInOrder(t *testing.T) {
	real := syncFile
	t.Cleanup(func() { syncFile = real })
	for name, write := range map[string]func(string, []byte) error{"Write": Write, "Create": Create} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		var synced []string
		var fail error
		syncFile = func(f *os.File) error {
			what := "folder"
			if data, err := os.ReadFile(f.Name()); err == nil {
				what = "file with " + string(data)
			}
			if _, err := os.Lstat(path); err == nil {
				what += ", named"
			}
			synced = append(synced, what)
			return fail
		}
		if err := write(path, []byte("words")); err != nil {
			t.Fatal(err)
		}
		want := []string{"file with words", "folder, named"}
		if runtime.GOOS == "windows" {
			want = want[:1]
		}
		if diff := cmp.Diff(want, synced); diff != "" {
			t.Errorf("%s synced (-want +got):\n%s", name, diff)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		fail = errors.New("no sync today")
		if err := write(path, []byte("words")); !errors.Is(err, fail) {
			t.Errorf("%s without a sync: got %v, want %v", name, err, fail)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 0 {
			t.Errorf("%s without a sync left %v, %v; want nothing", name, left, err)
		}
	}
}
