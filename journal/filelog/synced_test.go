package filelog

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
)

// Who wants to know is told of each sync once it is one, and at the end before anybody
// else can own the log.
func TestSyncedIsTold(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var told []string
	opt := Options{Synced: func(epoch, head uint64, last bool) {
		_, held := Holder(dir)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(epoch, head, last, held))
	}}
	o, err := Own(t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for range i { // of nothing new nobody is told
			if _, err := o.Append(t.Context(), journal.Draft{At: 1, Events: []journal.Event{json.RawMessage(`{"type":"x"}`)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil { // again
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"1 1 false true", "1 2 false true", "1 4 false true", "1 4 true true"}, told); diff != "" {
		t.Error(diff)
	}
}
