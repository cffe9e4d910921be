package intake

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/roofmt"
)

// The holder writes and releases its lock after the files are read and before the lock is checked: what was read is
// what the holder replaced.
func TestALockThatGoesWhileWeReadIsNotMissed(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, roofmt.APIName+".lock")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := roofmt.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if !locked(folder) {
		t.Error("a lock that is held is not seen")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if !locked(folder) {
		t.Error("files that were read under a lock are believed")
	}
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * staleLock)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	if locked(folder) {
		t.Error("a lock without a holder is waited for")
	}
}

func TestQuiet(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(ago time.Duration) roofmt.Fingerprint {
		return roofmt.Fingerprint{Exists: true, MTime: now.Add(-ago).UnixNano()}
	}
	for name, c := range map[string]struct {
		ui, api roofmt.Fingerprint
		watched time.Duration
		want    time.Duration
	}{
		"the newer file counts":       {at(time.Hour), at(time.Minute), 0, time.Minute},
		"a clock that runs ahead":     {at(-time.Hour), at(time.Hour), 2 * time.Second, 2 * time.Second},
		"no file at all":              {roofmt.Fingerprint{}, roofmt.Fingerprint{}, time.Second, time.Second},
		"watched longer than it says": {at(time.Second), at(time.Second), time.Minute, time.Minute},
	} {
		if got := quiet([2]roofmt.Fingerprint{c.ui, c.api}, now.Add(-c.watched), now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
