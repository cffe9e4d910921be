package checkpointtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// replies are how many replies of the model stand in a task's history, and how many do
// when the newest messages go.
func (w *world) replies(j *job, behind int) (all, left int) {
	w.t.Helper()
	var api []struct {
		Role string `json:"role"`
	}
	w.must(&api, "show", j.id, "--api", "--json")
	for i, m := range api {
		if m.Role != "assistant" {
			continue
		}
		all++
		if i < len(api)-behind {
			left++
		}
	}
	return all, left
}

// rewound is what a rewind prints.
type rewound struct {
	Gone    struct{ API int } `json:"gone"`
	Calls   []gone            `json:"calls"`
	Restore restored          `json:"restore"`
}

// gone is a call that goes, or only its outcome.
type gone struct {
	Name  string `json:"name"`
	Stays bool   `json:"stays"`
}

// moment is where files go when so many replies stay, and of the last one of them some
// calls' outcomes go.
func (j *job) moment(left int, calls []gone) (to int, of map[string]int) {
	of = map[string]int{}
	if left < len(j.replies) {
		to = j.replies[left].before
	} else {
		to = j.history.Newest()
	}
	n := 0
	for _, c := range calls {
		if c.Stays && c.Name != "read_file" && c.Name != "attempt_completion" {
			n++
		}
	}
	if n > 0 {
		last := j.replies[left-1].calls
		for _, c := range slices.Backward(last[len(last)-n:]) {
			for _, p := range c.paths {
				of[p] = c.before
			}
		}
	}
	return to, of
}

// rewind takes the histories back to anywhere and the files with them, by any rule, and
// mostly takes that back and does it again.
func (w *world) rewind(r *rand.Rand, j *job) {
	w.t.Helper()
	all, _ := w.replies(j, 0)
	if all != len(j.replies) {
		w.fatalf("%d replies stand in the history, and not %d", all, len(j.replies))
	}
	rule := pick(r, []Rule{Keep, Keep, Merge, Overwrite})
	at := fmt.Sprintf("~%d", 1+r.IntN(len(j.replies)))
	if r.IntN(2) == 0 {
		at = fmt.Sprintf("c%d", pick(r, w.list(j)).Number)
	}
	args := []string{"rewind", j.id, "--to", at, "--files", "--on-conflict", string(rule), "--yes", "--json"}
	before := w.tree()
	var preview, done rewound
	dry := w.roost(append(slices.Clone(args), "--dry-run")...)
	if dry.code == 5 && at[0] == 'c' {
		return // it was taken back with its messages, or nothing came behind it
	}
	if dry.code != 0 {
		w.fatalf("exit code %d\n%s", dry.code, dry.err)
	}
	w.read(dry, &preview)
	if diff := w.tree().Compare(before); diff != "" {
		w.fatalf("a dry run changed files:\n%s", diff)
	}
	_, left := w.replies(j, preview.Gone.API)
	to, of := j.moment(left, preview.Calls)
	want := j.history.Rewind(to, of, before, rule)
	stood := slices.Clone(j.replies)
	stands := func(what string, want Tree, replies []reply) {
		w.t.Helper()
		if diff := w.tree().Compare(want); diff != "" {
			w.fatalf("%s of a rewind:\n%s", what, diff)
		}
		if n, _ := w.replies(j, 0); n != len(replies) {
			w.fatalf("%s of a rewind: %d replies stand in the history, and not %d", what, n, len(replies))
		}
		w.settled()
		j.replies = slices.Clone(replies)
	}
	if len(want.Changed) > 0 && r.IntN(3) == 0 {
		w.killed(r, j, args, before, want, func(what string, want Tree, back bool) {
			w.t.Helper()
			replies := stood
			if back {
				replies = stood[:left]
			}
			stands(what, want, replies)
		})
		return
	}
	answer := w.must(&done, args...)
	after := w.tree()
	w.untouched(j, before, after)
	if diff := after.Compare(want.After); diff != "" {
		for _, p := range after.Differs(want.After) {
			diff += fmt.Sprintf("the story of %q:\n%s", p, j.history.Story(p))
		}
		w.fatalf("rewound to reply %d of %v with %s:\n%sthe rewind said %s", left+1, j.replies, rule, diff, answer.out)
	}
	for _, said := range []restored{preview.Restore, done.Restore} {
		if diff := cmp.Diff([][]string{list(want.Changed), list(want.Kept), {}}, [][]string{paths(said.Files), paths(said.Conflicts), paths(said.Lost)}); diff != "" {
			w.fatalf("rewound to reply %d with %s it says other files: %s", left+1, rule, diff)
		}
	}
	w.took(j, moved{want.Changed, want.Changed, before, after})
	w.did.rewinds++
	stands("after", after, stood[:left])
	if r.IntN(4) == 0 {
		return
	}
	w.did.undone++
	w.must(nil, "undo", j.id, "--json")
	stands("undo", before, stood)
	w.took(j, moved{want.Changed, want.Changed, after, before})
	if r.IntN(2) == 0 {
		w.did.redone++
		w.must(nil, "redo", j.id, "--json")
		stands("redo", after, stood[:left])
		w.took(j, moved{want.Changed, want.Changed, before, after})
	}
}
