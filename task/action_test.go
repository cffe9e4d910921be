package task_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
)

// filed is what the labels of a state say.
func filed(s *task.State) string { return fmt.Sprintf("%q %v %v", s.Title, s.Tags, s.Pinned) }

// Whatever is done, taken back and done again, the labels are those that a list of
// what they were would give; reading the log again, or a snapshot, says the same.
func TestActionsProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := tell(t, task.Created{Task: "t", Title: "first"})
		was := []string{filed(w.State)} // before each action that is done
		var again []string              // what redo comes to
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			switch rapid.IntRange(0, 4).Draw(r, "do") {
			case 0:
				if done := w.Actions.Done; len(done) > 0 {
					w.then(done[len(done)-1].Back())
					again, was = append(again, was[len(was)-1]), was[:len(was)-1]
				}
			case 1:
				if undone := w.Actions.Undone; len(undone) > 0 {
					w.then(undone[len(undone)-1].Again())
					was, again = append(was, again[len(again)-1]), again[:len(again)-1]
				}
			case 2: // what happens to the task otherwise is no action
				w.then(task.Changed{Settings: &task.Settings{Mode: rapid.StringN(0, 3, 3).Draw(r, "mode")}})
			default:
				var e task.Changed
				switch rapid.IntRange(0, 2).Draw(r, "what") {
				case 0:
					title := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "title")
					e.Title = &title
				case 1:
					tags := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, 2).Draw(r, "tags")
					e.Tags = &tags
				default:
					pin := rapid.Bool().Draw(r, "pin")
					e.Pinned = &pin
				}
				w.then(e)
				was, again = append(was, filed(w.State)), nil
			}
			for how, s := range map[string]*task.State{"folded": w.State, "again": w.again(1 << 20), "restored": w.restored(1 << 20)} {
				if got := filed(s); got != was[len(was)-1] {
					r.Fatalf("%s: %s, want %s", how, got, was[len(was)-1])
				}
				if len(s.Actions.Done) != len(was)-1 || len(s.Actions.Undone) != len(again) {
					r.Fatalf("%s: got %+v, want len(s.Actions.Done) = len(was)-1 and len(s.Actions.Undone) = len(again)",
						how, s.Actions)
				}
			}
		}
	})
}

// Several labels in one event, or in one commit, are one action.
func TestAnActionOfSeveralLabels(t *testing.T) {
	one, two, yes := "one", "two", true
	for name, events := range map[string][]task.Event{
		"one event":  {task.Changed{Title: &one, Tags: &[]string{"a"}, Pinned: &yes}},
		"one commit": {task.Changed{Title: &two}, task.Changed{Tags: &[]string{"a"}}, task.Changed{Pinned: &yes, Title: &one}},
	} {
		w := tell(t, task.Created{Task: "t"}).then(events...)
		if len(w.Actions.Done) != 1 || filed(w.State) != `"one" [a] true` {
			t.Errorf("%s: got %s %+v, want len(w.Actions.Done) = 1 and filed(w.State) = `\"one\" [a] true`",
				name, filed(w.State), w.Actions)
			continue
		}
		action := w.Actions.Done[0]
		if w.then(action.Back()); filed(w.State) != `"" [] false` {
			t.Errorf("%s: taken back: %s", name, filed(w.State))
		}
		if w.then(action.Again()); filed(w.State) != `"one" [a] true` {
			t.Errorf("%s: done again: %s", name, filed(w.State))
		}
	}
}

// An action whose commit is lost cannot be taken back, and taking it back is no error:
// the event says what holds from then on.
func TestAnActionThatIsLost(t *testing.T) {
	title, other := "named", "first"
	w := tell(t, task.Created{Task: "t", Title: "first"}).lose()
	w.then(task.Changed{Title: &other, Undoes: 2})
	if len(w.Actions.Done)+len(w.Actions.Undone) != 0 || w.Title != "first" {
		t.Errorf("got %+v, want len(w.Actions.Done)+len(w.Actions.Undone) = 0 and w.Title = \"first\"", w.Actions)
	}
	w.then(task.Changed{Title: &title}).lose().then(task.Changed{Title: &other})
	if got := w.Actions.Done; len(got) != 2 || *got[1].Before.Title != "named" {
		t.Errorf("got %+v, want len(got) = 2 and *got[1].Before.Title = \"named\"", got)
	}
}

// Old actions make room for new ones: a state stays small, however often a program tags.
func TestActionsAreBounded(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	for i := range 250 {
		tags := []string{fmt.Sprint(i)}
		w.then(task.Changed{Tags: &tags})
	}
	done := w.Actions.Done
	if len(done) != 100 || (*done[99].After.Tags)[0] != "249" || (*done[0].Before.Tags)[0] != "149" {
		t.Errorf("%d actions", len(done))
	}
}

// A state that was copied keeps its actions when the other one goes on.
func TestActionsAreNotShared(t *testing.T) {
	a, b := "a", "b"
	w := tell(t, task.Created{Task: "t"}).then(task.Changed{Title: &a}).then(task.Changed{Title: &b})
	kept := w.Actions
	want := task.Actions{Done: slices.Clone(kept.Done), Last: kept.Last}
	w.then(kept.Done[1].Back()).then(kept.Done[0].Back()).then(task.Changed{Title: &b})
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
}

// A rewind records how many messages of each history it hid.
func TestARewindCountsWhatItHides(t *testing.T) {
	w := tell(t, task.Created{Task: "p"}, ui(1, say(1, "a")), reply(2, turn("user", "a", 2)), ui(3, say(3, "b")),
		reply(4, turn("assistant", "b", 4)), reply(5, turn("user", "c", 5)))
	w.then(task.Rewound{Why: "rewind", To: 3, Hide: []task.Run64{{3, 5}}})
	if d := w.Actions.Done; len(d) != 1 || d[0].Gone != (task.Gone{UI: 1, API: 2}) {
		t.Errorf("got the actions %+v, want one that hid 1 row and 2 messages of the model's", d)
	}
}

// A rewind takes the inputs that it names out of the queue, and leaves the others.
func TestARewindTakesQueuedInputs(t *testing.T) {
	w := tell(t, task.Created{Task: "p"}, ui(1, say(1, "a")), ui(2, say(2, "b")),
		task.InputQueued{Input: "one", Text: "1"}, task.InputQueued{Input: "two", Text: "2"}, task.InputQueued{Input: "three", Text: "3"})
	w.then(task.Rewound{Why: "rewind", To: 2, Hide: []task.Run64{{2, 2}}, Inputs: []string{"one", "three"}})
	if d := cmp.Diff([]task.InputQueued{{Input: "two", Text: "2"}}, w.Queue); d != "" {
		t.Error(d)
	}
}
