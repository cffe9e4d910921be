package store

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

const (
	staleEntry = `{"id":"mine","number":3,"ts":1,"task":"do it","status":"delegated","awaitingChildId":"c"}`
	otherEntry = `{"id":"other","ts":1.5e3,"task":"\u00fc","novel":{"a":1}}`
)

func rooIndex(entries ...string) string {
	return `{"version":1,"updatedAt":7,"entries":[` + strings.Join(entries, ",") + `],"more":[1]}`
}

func oneMore(t *testing.T, s *Store, n int) {
	t.Helper()
	k := own(t, s, "mine").Task
	commit(t, k, task.UI, uiRow(n, "more"))
	closeTask(t, k)
}

// Roo believes its index, not history_item.json, so the entry of a task that Roost went on
// with goes, and nothing else does.
func TestARooIndexLosesTheEntryOfAWrittenTask(t *testing.T) {
	storage, dir := rooStorage(t, "mine")
	tasks, root := filepath.Dir(dir), filepath.Join(t.TempDir(), "root")
	before := rooIndex(staleEntry, otherEntry)
	write(t, tasks, roofmt.IndexName, before)
	s := open(t, root, storage)
	closeTask(t, own(t, s, "mine").Task)
	if got := read(t, tasks, roofmt.IndexName); got != before {
		t.Errorf("a task that was only taken over: %s", got)
	}
	want := `{"version":1,"updatedAt":1700000100000,"entries":[` + otherEntry + `],"more":[1]}`
	oneMore(t, s, 5)
	if got := read(t, tasks, roofmt.IndexName); got != want {
		t.Errorf("index\n%s\nwant\n%s", got, want)
	}
	// An entry that says the same as the file stays.
	before = rooIndex(strings.ReplaceAll(read(t, dir, roofmt.ItemName), `,"ts"`, `, "ts"`), otherEntry)
	write(t, tasks, roofmt.IndexName, before)
	if done, err := projection.Unlist(t.Context(), dir, "mine", 9); !done || err != nil {
		t.Errorf("an entry that is not stale: %v, %v", done, err)
	}
	if got := read(t, tasks, roofmt.IndexName); got != before {
		t.Errorf("an entry that is not stale: %s", got)
	}
}

// A window that writes its index is not disturbed: the next write tries again.
func TestARooIndexThatAWindowHoldsIsLeft(t *testing.T) {
	storage, dir := rooStorage(t, "mine")
	tasks, root := filepath.Dir(dir), filepath.Join(t.TempDir(), "root")
	index := filepath.Join(tasks, roofmt.IndexName)
	before := rooIndex(staleEntry, otherEntry)
	write(t, tasks, roofmt.IndexName, before)
	s := open(t, root, storage)

	window := process(t, "window", "STORE_TEST_FROM="+index)
	window.Stderr = os.Stderr
	in := fixture.Must[io.WriteCloser](t)(window.StdinPipe())
	out := fixture.Must[io.ReadCloser](t)(window.StdoutPipe())
	fixture.NoError(t, window.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("got %q, %v, want no error and line = \"ready\\n\"", line, err)
	}
	oneMore(t, s, 5)
	if got := read(t, tasks, roofmt.IndexName); got != before {
		t.Errorf("written under a lock of another process: %s", got)
	}
	fixture.NoError(t, in.Close())
	fixture.NoError(t, window.Wait())
	oneMore(t, s, 6)
	if got := read(t, tasks, roofmt.IndexName); strings.Contains(got, `"mine"`) || !strings.Contains(got, otherEntry) {
		t.Errorf("after the window let go: %s", got)
	}
}

// What is not an index as Roo writes it stays byte for byte, and is no error.
func TestARooIndexOfAnotherShapeIsLeft(t *testing.T) {
	for _, text := range []string{
		"", "[" + staleEntry + "]", `{"version":2,"entries":[` + staleEntry + `]}`, `{"version":1,"entries":{"mine":` + staleEntry + `}}`,
		`{"version":1,"updatedAt":7,"entries":[` + staleEntry, "link", "folder",
	} {
		storage, dir := rooStorage(t, "mine")
		tasks := filepath.Dir(dir)
		path := filepath.Join(tasks, roofmt.IndexName)
		switch text {
		case "folder":
			fixture.NoError(t, os.Mkdir(path, 0o700))
		case "link":
			write(t, storage, "elsewhere.json", rooIndex(staleEntry))
			fixture.NoError(t, os.Symlink(filepath.Join(storage, "elsewhere.json"), path))
		default:
			write(t, tasks, roofmt.IndexName, text)
		}
		oneMore(t, open(t, filepath.Join(t.TempDir(), "root"), storage), 5)
		switch text {
		case "folder":
		case "link":
			if got := read(t, storage, "elsewhere.json"); got != rooIndex(staleEntry) {
				t.Errorf("through a link: %s", got)
			}
		default:
			if got := read(t, tasks, roofmt.IndexName); got != text {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// A process that was killed while it wrote the task's files leaves the entry to the next owner.
func TestARooIndexAfterAKilledOwner(t *testing.T) {
	for _, point := range []string{"project.temp", "project.renamed", "project.written"} {
		storage, dir := rooStorage(t, "mine")
		tasks, root := filepath.Dir(dir), filepath.Join(t.TempDir(), "root")
		write(t, tasks, roofmt.IndexName, rooIndex(staleEntry, otherEntry))
		if out, err := process(t, "commit", "STORE_TEST_ROOT="+root, "STORE_TEST_SOURCES="+storage, "STORE_TEST_TASK=mine", "ROOST_FAILPOINT="+point).CombinedOutput(); err == nil {
			t.Fatalf("%s was not killed: %s", point, out)
		}
		closeTask(t, own(t, open(t, root, storage), "mine").Task)
		if got := read(t, tasks, roofmt.IndexName); strings.Contains(got, `"mine"`) || !strings.Contains(got, otherEntry) {
			t.Errorf("killed at %s: %s", point, got)
		}
	}
}
