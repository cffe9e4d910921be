package store

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// Whoever wants into the index when very many others do gets into it, and what they wrote
// stays.
func TestIndexThatManyOthersChange(t *testing.T) {
	s := open(t, t.TempDir())
	k := create(t, s, "one")
	now, others := s.opt.Now, 0
	index := filepath.Join(s.TasksDir(), roofmt.IndexName)
	s.opt.Now = func() int64 { // it is asked for between reading the index and writing it
		if others < 40 {
			others++
			check(t, renamed(index, fmt.Appendf(nil, `{"version":1,"entries":[{"id":"two","ts":%d}]}`, others)))
		}
		return now()
	}
	write(t, filepath.Join(s.TasksDir(), "two"), roofmt.UIName, array(uiRow(1, "of another process")))
	check(t, k.proj.settle(context.Background()))
	check(t, s.IndexTask(context.Background(), s.OwnRef("one")))
	if got := read(t, s.TasksDir(), roofmt.IndexName); others != 40 || !strings.Contains(got, `"id":"one"`) || !strings.Contains(got, `{"id":"two","ts":40}`) {
		t.Errorf("after %d others: %s", others, got)
	}
	closeTask(t, k)
}

// Tasks that end while the index is written come into it together, with one writing more.
func TestTasksThatEndTogetherShareAWriting(t *testing.T) {
	s := open(t, t.TempDir())
	const tasks = 12
	for i := range tasks {
		dir := filepath.Join(s.TasksDir(), fmt.Sprint("task-", i))
		write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":"task-%d","ts":%d}`, i, i))
	}
	writings, begun, goOn := 0, make(chan struct{}), make(chan struct{})
	now := s.opt.Now
	s.opt.Now = func() int64 { // it is asked for at each writing
		if writings++; writings == 1 {
			close(begun)
			<-goOn
		}
		return now()
	}
	var all sync.WaitGroup
	end := func(i int) {
		all.Go(func() {
			if err := s.IndexTask(context.Background(), s.OwnRef(fmt.Sprint("task-", i))); err != nil {
				t.Error(err)
			}
		})
	}
	end(0)
	<-begun
	write(t, s.TasksDir(), roofmt.IndexName, `{"version":1,"entries":[]}`) // so that it does not name all by now
	for i := range tasks - 1 {
		end(i + 1)
	}
	waiting := func() int {
		s.indexing.mu.Lock()
		defer s.indexing.mu.Unlock()
		if s.indexing.next == nil {
			return 0
		}
		return len(s.indexing.next.items)
	}
	for waiting() < tasks-1 {
		runtime.Gosched()
	}
	close(goOn)
	all.Wait()
	if got := must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir())); len(got.Entries) != tasks || writings != 3 {
		t.Errorf("%d tasks after %d writings, one of which found another index", len(got.Entries), writings)
	}
}
