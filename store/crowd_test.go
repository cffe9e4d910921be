package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
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
			fixture.NoError(t, renamed(index, fmt.Appendf(nil, `{"version":1,"entries":[{"id":"two","ts":%d}]}`, others)))
		}
		return now()
	}
	write(t, filepath.Join(s.TasksDir(), "two"), roofmt.UIName, array(uiRow(1, "of another process")))
	fixture.NoError(t, k.proj.Settle(context.Background()))
	fixture.NoError(t, s.IndexTask(context.Background(), s.OwnRef("one")))
	if got := read(t, s.TasksDir(), roofmt.IndexName); others != 40 || !strings.Contains(got, `"id":"one"`) || !strings.Contains(got, `{"id":"two","ts":40}`) {
		t.Errorf("after %d others: %s", others, got)
	}
	closeTask(t, k)
}
