package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
)

// What is said behind a commit is told behind it, however late the log is read, within
// bounds of time and number; and of a task whose log nobody reads at once.
func TestWhatIsSaidWaitsForWhatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, v := newFeed(nil), newVoices(nil)
		f.begin(place{}, "")
		told := func() (out []string) {
			for _, one := range f.look(place{}, 0, nil).events {
				out = append(out, one.typ)
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
		v.say(f, engine.Event{Type: "behind 5", Task: "a", Behind: 5})
		v.say(f, engine.Event{Type: "behind 3", Task: "a", Behind: 3})
		v.say(f, engine.Event{Type: "of another", Task: "b", Behind: 9})
		time.Sleep(5 * time.Second) // a machine that stood still
		v.wake(f)
		is("behind 3", "of another")
		one := engine.Event{Type: "commit 5", Task: "a", Seq: 5, ID: "1.5-0"}
		v.durable(f, []engine.Event{one}, itemsOf([]engine.Event{one}))
		is("behind 3", "of another", "commit 5", "behind 5")
		v.say(f, engine.Event{Type: "behind what never comes", Task: "a", Behind: 6})
		time.Sleep(heldFor + time.Millisecond)
		v.wake(f)
		is("behind 3", "of another", "commit 5", "behind 5", "behind what never comes")
		for i := range heldMost + 2 {
			v.say(f, engine.Event{Type: fmt.Sprint(i), Task: "a", Behind: 7})
		}
		if got := told(); len(v.held) != heldMost || got[len(got)-1] != "1" {
			t.Errorf("%d are held, the newest that is told is %s", len(v.held), got[len(got)-1])
		}
	})
}
