package spool_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent/spool"
)

// What is left is named without being touched; what somebody holds is not named.
func TestLeft(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such locks here")
	}
	dir := t.TempDir()
	dead, kill := other(t, dir)
	living, end := other(t, dir)
	defer end()
	if got := spool.Left(dir); len(got) != 0 {
		t.Errorf("two living processes left %v", got)
	}
	kill()
	for _, name := range []string{"somebody-elses", "roost-spool-file"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, age := range []time.Duration{time.Minute, 48 * time.Hour} { // a new one may get its lock just now
		path := filepath.Join(dir, "roost-spool-"+age.String())
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{dead, filepath.Join(dir, "roost-spool-48h0m0s")}
	slices.Sort(want)
	for range 2 {
		got := spool.Left(dir)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("left: %v, want %v", got, want)
		}
	}
	spool.Sweep(dir)
	if got := spool.Left(dir); len(got) != 0 {
		t.Errorf("after a sweep: %v", got)
	}
	if _, err := os.Stat(living); err != nil {
		t.Error("what somebody holds was swept away")
	}
}
