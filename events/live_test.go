package events

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/store/feed"
)

// What is said behind a commit is told behind it, however late the log is read, within
// bounds of time and number; and of a task whose log nobody reads at once.
func TestWhatIsSaidWaitsForWhatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRing()
		v := newLiveOrder(f)
		f.start(Cursor{})
		told := func() (out []string) {
			for _, one := range f.view(Cursor{}, 0, nil).items {
				out = append(out, one.Type)
			}
			return out
		}
		is := func(want ...string) {
			t.Helper()
			if d := cmp.Diff(want, told()); d != "" {
				t.Error(d)
			}
		}
		v.read["a"] = 3
		v.take(&published{Event: Event{Type: "behind 5", Task: "a", Behind: 5}})
		v.take(&published{Event: Event{Type: "behind 3", Task: "a", Behind: 3}})
		v.take(&published{Event: Event{Type: "of another", Task: "b", Behind: 9}})
		time.Sleep(5 * time.Second) // a machine that stood still
		v.wake()
		is("behind 3", "of another")
		one := Event{Type: "commit 5", Task: "a", Seq: 5, ID: "1.5-0"}
		v.addCommit([]Event{one}, itemsOf([]Event{one}, feed.Place{}))
		is("behind 3", "of another", "commit 5", "behind 5")
		v.take(&published{Event: Event{Type: "behind what never comes", Task: "a", Behind: 6}})
		time.Sleep(maxHeldTime + time.Millisecond)
		v.wake()
		is("behind 3", "of another", "commit 5", "behind 5", "behind what never comes")
		for i := range maxHeld + 2 {
			v.take(&published{Event: Event{Type: fmt.Sprint(i), Task: "a", Behind: 7}})
		}
		if got := told(); len(v.held) != maxHeld || got[len(got)-1] != "1" {
			t.Errorf("%d are held, the newest that is told is %s", len(v.held), got[len(got)-1])
		}
	})
}
