package filelog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// TestBigLog measures a 500 MB log with and without its index. It writes a lot,
// so it only runs when asked for.
func TestBigLog(t *testing.T) {
	if os.Getenv("FILELOG_BIG") == "" {
		t.Skip("set FILELOG_BIG=1 to write and read 500 MB")
	}
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	d := journal.Draft{Events: []journal.Event{[]byte(`{"x":"` + strings.Repeat("y", 10000) + `"}`)}}
	for range 50000 {
		if _, err := o.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for _, with := range []bool{true, false} {
		if !with {
			os.Remove(filepath.Join(dir, "journal.idx"))
		}
		start, n := time.Now(), 0
		r, err := filelog.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.ReadBackward(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 50 {
				break
			}
		}
		took := time.Since(start)
		r.Close()
		t.Logf("last 50 commits, index %v: %v", with, took)
		if n != 50 || with && took > 200*time.Millisecond {
			t.Fatal("too slow or too few")
		}
	}
}
