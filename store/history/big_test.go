package history_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// counting counts what is passed to the disk through it.
type counting struct {
	filelog.FS
	bytes *atomic.Int64
}

type countingFile struct {
	filelog.File
	bytes *atomic.Int64
}

func (c counting) OpenFile(name string, flag int, perm fs.FileMode) (filelog.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return countingFile{f, c.bytes}, nil
}

func (f countingFile) Append(b []byte) (int, error) {
	f.bytes.Add(int64(len(b)))
	return f.File.Append(b)
}

func (f countingFile) WriteAt(b []byte, off int64) (int, error) {
	f.bytes.Add(int64(len(b)))
	return f.File.WriteAt(b, off)
}

// TestBigRewind says what rewind, undo and fork of a task of ROOST_REWIND_MESSAGES
// messages take until they return; it asserts only what does not depend on the machine:
// that next to nothing is written before that.
func TestBigRewind(t *testing.T) {
	storetest.SkipInShort(t)
	n, err := strconv.Atoi(os.Getenv("ROOST_REWIND_MESSAGES"))
	if err != nil {
		n = 2000
	}
	ctx := context.Background()
	disk := counting{FS: filelog.OS, bytes: new(atomic.Int64)}
	s := storetest.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), FS: disk}))
	written := disk.bytes.Load
	k := storetest.Create(t, s, "big")
	text := strings.Repeat("word ", 40)
	for i := 0; i < n; i += 100 {
		var events []task.Event
		next := k.State().NextMessage()
		for j := range uint64(50) {
			ts := i + int(j)*2
			events = append(events,
				task.MessageAdded{History: task.UI, Message: next + 2*j, Body: task.Body{Raw: []byte(storetest.UIRow(ts, text))}},
				task.MessageAdded{History: task.API, Message: next + 2*j + 1, Body: task.Body{Raw: []byte(storetest.APIRow(ts, []string{"assistant", "user"}[j%2], text))}})
		}
		storetest.Check(t, k.Commit(ctx, events...))
	}
	storetest.Close(t, k)
	ref := storetest.Must[store.Ref](t)(s.Find(ctx, "big"))
	best := map[string]time.Duration{}
	least := map[string]int64{}
	note := func(what string, took time.Duration, bytes int64) {
		if b, ok := best[what]; !ok || took < b {
			best[what] = took
		}
		if l, ok := least[what]; !ok || bytes < l {
			least[what] = bytes
		}
	}
	for range 3 { // a busy machine slows some: the best counts
		before, begun := written(), time.Now()
		_, finish, err := history.Rewind(ctx, s, ref, history.RewindOptions{To: fmt.Sprint("#", n/4)})
		note("rewind", time.Since(begun), written()-before)
		storetest.Check(t, err)
		storetest.Check(t, finish(ctx))

		before, begun = written(), time.Now()
		saved := false
		_, _, err = actions.Undo(ctx, s, "big", actions.Options{Saved: func(api.Action, api.TaskActions) {
			saved = true
			note("undo", time.Since(begun), written()-before)
		}})
		storetest.Check(t, err)
		if !saved {
			t.Error("nobody was told when undo was saved")
		}
		before, begun = written(), time.Now()
		_, finish, err = history.Fork(ctx, s, ref, history.ForkOptions{At: fmt.Sprint("#", n/4)})
		note("fork", time.Since(begun), written()-before)
		storetest.Check(t, err)
		storetest.Check(t, finish(ctx))
	}
	for what, took := range best {
		t.Logf("%s of %d messages: %v, %d bytes written", what, n, took.Round(100*time.Microsecond), least[what])
		if least[what] > 4<<10 {
			t.Errorf("%s wrote %d bytes before it returned", what, least[what])
		}
	}
	say := func(what string) {
		begun := time.Now()
		v := storetest.View(t, s, "big")
		opened := time.Since(begun)
		begun = time.Now()
		sent, _, err := v.Sent()
		storetest.Check(t, err)
		t.Logf("%s: opened in %v; %d messages that would be sent, in %v", what, opened.Round(100*time.Microsecond), len(sent), time.Since(begun).Round(100*time.Microsecond))
	}
	say("whole")
	owned := storetest.Must[*store.Owned](t)(s.Own(ctx, ref)).Task
	api, next := owned.State().API(), owned.State().NextMessage()
	last := len(api) - min(len(api)/2, 200)
	storetest.Check(t, owned.Commit(ctx,
		task.MessageAdded{History: task.API, Message: next, Before: api[last].ID, Body: task.Body{Raw: []byte(`{"role":"user","content":"so far","ts":1,"isSummary":true,"condenseId":"S"}`)}},
		task.MessageAdded{History: task.UI, Message: next + 1, Body: task.Body{Raw: []byte(storetest.UIRow(n+1, "condensed"))}},
		task.HistoryCondensed{Condense: "S", Summary: next, Row: next + 1, Covers: owned.State().RunsOf(api[:last]), Messages: last}))
	storetest.Close(t, owned)
	say("condensed")
}
