package task_test

import (
	"fmt"
	"testing"

	"github.com/roost-dev/roost/task"
)

// Tags and pin are folded like every setting: what an event does not say stays,
// and an empty list of tags is none. Reading the log again, or a snapshot of it,
// says the same.
func TestTagsAndPin(t *testing.T) {
	yes, no := true, false
	title := "named"
	w := tell(t, task.Created{Task: "t", Title: "first"})
	for _, step := range []struct {
		event task.Changed
		want  string
	}{
		{task.Changed{Tags: &[]string{"a", "b"}}, "first [a b] false"},
		{task.Changed{Pinned: &yes}, "first [a b] true"},
		{task.Changed{Title: &title, Settings: &task.Settings{Mode: "ask"}}, "named [a b] true"},
		{task.Changed{Tags: &[]string{"b"}, Pinned: &no}, "named [b] false"},
		{task.Changed{Tags: &[]string{}}, "named [] false"},
	} {
		w.then(step.event)
		for how, s := range map[string]*task.State{"folded": w.State, "again": w.again(1 << 20), "restored": w.restored(1 << 20)} {
			if got := fmt.Sprintf("%s %v %v", s.Title, s.Tags, s.Pinned); got != step.want {
				t.Errorf("%s: %s, want %s", how, got, step.want)
			}
		}
	}
}
