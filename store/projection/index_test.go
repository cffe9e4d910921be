package projection

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// Tasks that end while the index is written come into it together, with one writing more.
func TestTasksThatEndTogetherShareAWriting(t *testing.T) {
	const tasks = 12
	root := t.TempDir()
	var ids []string
	for i := range tasks {
		dir := filepath.Join(root, fmt.Sprint("task-", i))
		fixture.NoError(t, os.Mkdir(dir, 0o700))
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, roofmt.ItemName), fmt.Appendf(nil, `{"id":"task-%d","ts":%d}`, i, i), 0o600))
		ids = append(ids, filepath.Base(dir))
	}
	writings, begun, goOn := 0, make(chan struct{}), make(chan struct{})
	now := func() int64 { // it is asked for at each writing
		if writings++; writings == 1 {
			close(begun)
			<-goOn
		}
		return 1700000100000
	}
	x := NewIndex(root, func() ([]string, error) { return ids, nil }, now)
	var all sync.WaitGroup
	end := func(i int) {
		all.Go(func() {
			if err := x.Put(context.Background(), ids[i]); err != nil {
				t.Error(err)
			}
		})
	}
	end(0)
	<-begun
	// So that it does not name all by now.
	fixture.NoError(t, os.WriteFile(filepath.Join(root, roofmt.IndexName), []byte(`{"version":1,"entries":[]}`), 0o600))
	for i := range tasks - 1 {
		end(i + 1)
	}
	waiting := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.next == nil {
			return 0
		}
		return len(x.next.ids)
	}
	for waiting() < tasks-1 {
		runtime.Gosched()
	}
	close(goOn)
	all.Wait()
	got, err := roofmt.ReadIndex(root)
	fixture.NoError(t, err)
	if len(got.Entries) != tasks || writings != 3 {
		t.Errorf("%d tasks after %d writings, one of which found another index", len(got.Entries), writings)
	}
}
