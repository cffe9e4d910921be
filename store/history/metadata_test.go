package history_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// A rewind takes what was known of files, and task_metadata.json says so; what the editor wrote into it stays. A fork has
// what its own history knows, and undo brings back the rest.
func TestMetadataAfterARewind(t *testing.T) {
	ctx := context.Background()
	storage, dir := storetest.RooStorage(t, "one")
	const theirs = `{"files_in_context":[{"path":"theirs","record_state":"active","record_source":"read_tool","roo_read_date":5,"roo_edit_date":null,"user_edit_date":null}]}`
	storetest.Write(t, dir, roofmt.MetadataName, theirs)
	s := storetest.Open(t, t.TempDir(), storage)
	k := storetest.Own(t, s, "one").Task
	for i, path := range []string{"first", "second", "theirs"} {
		storetest.Check(t, k.Commit(ctx, storetest.Message(k, task.UI, storetest.UIRow(100+i, path)), task.FileChanged{Path: path, Source: "read_tool"}))
	}
	storetest.Close(t, k)
	says := func(want ...string) {
		t.Helper()
		text := string(storetest.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, roofmt.MetadataName))))
		for _, path := range []string{"first", "second", "theirs"} {
			n := strings.Count(text, `"path":"`+path+`"`)
			count := 0
			for _, w := range want {
				if w == path {
					count++
				}
			}
			if n != count {
				t.Errorf("%s stands %d times, want %d: %s", path, n, count, text)
			}
		}
	}
	says("first", "second", "theirs", "theirs")
	ref := storetest.Must[store.Ref](t)(s.Find(ctx, "one"))
	_, finish, err := history.Rewind(ctx, s, ref, history.RewindOptions{To: "#" + strconv.Itoa(len(storetest.View(t, s, "one").State.UI())-1)})
	storetest.Check(t, err)
	storetest.Check(t, finish(ctx))
	says("first", "theirs")
	text := string(storetest.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, roofmt.MetadataName))))
	if !strings.Contains(text, `"path":"theirs","record_state":"active"`) {
		t.Errorf("the editor's record is not active again: %s", text)
	}

	forked := func(when, want string) {
		t.Helper()
		f, finish, err := history.Fork(ctx, s, ref, history.ForkOptions{})
		storetest.Check(t, err)
		storetest.Check(t, finish(ctx))
		fork := storetest.Must[store.Ref](t)(s.Find(ctx, f.ID))
		if got := knownFiles(t, fork.Dir); got != want {
			t.Errorf("a fork %s knows %s", when, got)
		}
	}
	forked("after the rewind", "theirs active; first active; ")
	storetest.Undo(t, s, "one", false)
	says("first", "second", "theirs", "theirs")
	forked("after the undo", "theirs stale; first active; second active; theirs active; ")
	storetest.Undo(t, s, "one", true)
	says("first", "theirs")
}
