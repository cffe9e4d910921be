package checkpointtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longVar is how many seeds the proof tries; seedVar is one seed, to see a failure again.
const (
	longVar = "ROOST_CHECKPOINT_SEEDS"
	seedVar = "ROOST_CHECKPOINT_SEED"
)

// An agent with its commands, a person with editor and git, and restores to any
// checkpoint in any order: the disk is what the pictures say, what the task never
// touched and all of every repository keeps its bytes, and undo gives everything back.
func TestProof(t *testing.T) {
	seeds := []uint64{16, 2} // with kills, and files that a person changed meanwhile
	if testing.Short() {
		seeds = seeds[:1]
	}
	if n, err := strconv.Atoi(os.Getenv(longVar)); err == nil {
		for i := range n {
			if s := uint64(i + 1); !slices.Contains(seeds, s) {
				seeds = append(seeds, s)
			}
		}
	}
	if one, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64); err == nil {
		seeds = []uint64{one}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("%+v", prove(t, rand.New(rand.NewPCG(seed, 1))))
		})
	}
}

// job is one task and what its checkpoints should be.
type job struct {
	id      string
	history *History
	replies []reply // that stand
}

// reply is one of the model.
type reply struct {
	before int    // the checkpoint of before its first change
	calls  []made // of those that change files
}

// made is what a call changed, and the newest checkpoint before it.
type made struct {
	paths  []string
	before int
}

// did is how often each thing happened.
type did struct {
	runs, users, restores, conflicts, merges, overwrites, undone, redone, rewinds, killed, left int
}

func prove(t *testing.T, r *rand.Rand) did {
	w := newWorld(t)
	repository := r.IntN(3) > 0
	w.furnish(repository)
	jobs := []*job{{history: NewHistory()}, {history: NewHistory()}}
	for range 16 {
		j := jobs[0]
		if r.IntN(5) == 0 {
			j = jobs[1] // another task is one of the others
		}
		switch {
		case j.history.Newest() == 0 || r.IntN(10) < 3: // a command may have changed nothing
			w.did.runs++
			w.agent(r, j)
		case r.IntN(10) < 5:
			for range 1 + r.IntN(3) {
				w.did.users++
				w.user(r, repository, j.history.Paths())
			}
		case len(j.replies) > 0 && r.IntN(2) == 0:
			w.rewind(r, j)
		default:
			w.restore(r, j)
		}
	}
	return w.did
}

// furnish makes the workspace that everything begins with.
func (w *world) furnish(repository bool) {
	for _, p := range slices.Concat(places[:10], mine) {
		if p == "new/dir/g.txt" || strings.HasPrefix(p, "sub/") || strings.HasPrefix(p, "tree/") {
			continue
		}
		w.put(p, file(w.text()))
	}
	w.put("src/deep/run.sh", Node{Mode: 0o755, Data: "#!/bin/sh\n"})
	w.put("mine/link", Node{Link: true, Data: "../a.txt"})
	w.put("mine/secret", Node{Mode: 0o400, Data: "mine"})
	w.put(".gitignore", file("ignored/\n*.o\n"))
	w.put("worktree/.git", Node{Mode: 0o644, Data: "gitdir: ../elsewhere\n"})
	if !repository {
		return
	}
	for _, dir := range []string{"vendor/lib", ""} {
		w.git(dir, "init", "-q")
		w.put(filepath.Join(dir, ".git/hooks/pre-commit"), Node{Mode: 0o755, Data: "#!/bin/sh\nexit 0\n"})
		w.git(dir, "add", "--", map[string]string{"": "src", "vendor/lib": "e.txt"}[dir], ".")
		w.git(dir, "commit", "-q", "-m", "first")
	}
	// A submodule, whose repository lies in the one above it, and a worktree of that one.
	w.put("../origin/s.txt", file(w.text()))
	w.git("../origin", "init", "-q")
	w.git("../origin", "add", ".")
	w.git("../origin", "commit", "-q", "-m", "first")
	w.git("", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(w.dir, "origin"), "sub")
	w.git("", "worktree", "add", "-q", "-b", "beside", "tree")
	for _, p := range []string{"sub/.git", "sub/s.txt", "tree/.git", "tree/src/c.go"} {
		if _, err := os.Stat(filepath.Join(w.ws, p)); err != nil {
			w.fatalf("no submodule or worktree: %v", err)
		}
	}
}

// agent lets a task run one or two turns that change files.
func (w *world) agent(r *rand.Rand, j *job) {
	w.t.Helper()
	before := w.tree()
	now := before.Clone()
	var plan [][]call
	var all []call
	for range 1 + r.IntN(2) {
		var turn []call
		for range 1 + r.IntN(3) {
			c, ok := w.agentCall(r, now)
			if !ok || slices.ContainsFunc(c.paths, func(p string) bool { return clash(now, p) }) {
				continue
			}
			c.effect(now)
			turn, all = append(turn, c), append(all, c)
		}
		if len(turn) > 0 {
			plan = append(plan, turn)
		}
	}
	if len(plan) == 0 {
		return
	}
	var played [][]call
	for _, turn := range plan {
		// The model knows what it edits: a write over what it does not know is refused.
		var calls []call
		for _, c := range turn {
			for _, p := range c.paths {
				calls = append(calls, call{name: "read_file", input: map[string]any{"path": p}})
			}
			calls = append(calls, c)
		}
		played = append(played, calls)
	}
	for _, c := range all {
		w.note("agent of %s: %s %q %.200q", j.id, c.name, c.paths, fmt.Sprint(c.input))
	}
	j.id = w.turns(j.id, played...)
	if diff := w.tree().Compare(now); diff != "" {
		w.fatalf("the agent left something else than its calls say:\n%s", diff)
	}
	w.follow(j, before, plan)
}

// listed is a checkpoint as the list shows it.
type listed struct {
	Number int    `json:"checkpoint"`
	Reason string `json:"reason"`
	Files  int    `json:"files"`
	Title  string `json:"title"`
}

func (w *world) list(j *job) []listed {
	w.t.Helper()
	var out struct {
		Checkpoints []listed `json:"items"`
	}
	w.must(&out, "checkpoint", "list", j.id, "--json")
	return out.Checkpoints
}

// fresh are the checkpoints that the history has not seen.
func (w *world) fresh(j *job) []listed {
	w.t.Helper()
	all := w.list(j)
	i := slices.IndexFunc(all, func(c listed) bool { return c.Number > j.history.Newest() })
	if i < 0 {
		return nil
	}
	return all[i:]
}

// follow plays the calls again on pictures, and gives each moment at which the task has
// to save a checkpoint the one that it saved.
func (w *world) follow(j *job, now Tree, plan [][]call) {
	w.t.Helper()
	fresh := w.fresh(j)
	h := j.history
	number := func() int { // that of the next one
		if len(fresh) > 0 {
			return fresh[0].Number
		}
		return h.Newest() + 1
	}
	save := func(reason string, news bool) bool {
		w.t.Helper()
		if len(fresh) > 0 && fresh[0].Reason == reason && (news || fresh[0].Files == 0) {
			h.Save(fresh[0].Number)
			fresh = fresh[1:]
			return true
		} else if news {
			w.fatalf("there is no checkpoint for %q; next are %v", reason, fresh)
		}
		return false
	}
	now = now.Clone()
	if n := len(j.replies); n > 0 && len(fresh) > 0 && fresh[0].Reason == "others" {
		// A reply of which a rewind left a part is told now, and of its files others changed some.
		var theirs []string
		for _, c := range j.replies[n-1].calls {
			theirs = append(theirs, slices.DeleteFunc(slices.Clone(c.paths), func(p string) bool { return h.known[p] == now[p] })...)
		}
		slices.Sort(theirs)
		save("others", h.Look(number(), slices.Compact(theirs), now))
	}
	for _, turn := range plan {
		j.replies = append(j.replies, reply{before: h.Newest()})
		one := &j.replies[len(j.replies)-1]
		told := false // something that the reply did is recorded
		// What calls wrote is recorded when the turn ends, or before a command that may
		// change the same files, or a call that does: a "before" in between is still of before
		// the turn.
		looked, written := map[string]bool{}, now.Clone()
		flush := func() {
			w.t.Helper()
			paths := slices.DeleteFunc(now.Differs(written), func(p string) bool { return !looked[p] })
			told = save("turn", h.Change(number(), paths, written, now)) || told
			written = now.Clone()
		}
		for _, c := range turn {
			if c.command {
				flush()
				before, newest := now.Clone(), h.Newest()
				c.effect(now)
				one.calls = append(one.calls, made{now.Differs(before), newest})
				told = save("command", h.Change(number(), now.Differs(before), before, now)) || told
				written = now.Clone()
				continue
			}
			paths := slices.DeleteFunc(slices.Clone(c.paths), func(p string) bool { return looked[p] })
			if len(paths) < len(c.paths) {
				flush() // what is changed again is recorded as it is left
			}
			for _, p := range paths {
				looked[p] = true
			}
			if save("before", h.Look(number(), paths, now)) && !told {
				one.before = h.Newest()
			}
			one.calls = append(one.calls, made{c.paths, h.Newest()})
			c.effect(now)
		}
		flush()
	}
	j.replies = append(j.replies, reply{before: h.Newest()}) // that all is done
	if len(fresh) > 0 {
		w.fatalf("more checkpoints than moments for one: %v", fresh)
	}
}

// restored is what a restore prints.
type restored struct {
	Outcome   string   `json:"outcome"`
	Safety    int      `json:"safety"`
	Files     []item   `json:"files"`
	Conflicts []item   `json:"conflicts"`
	Lost      []item   `json:"lost"`
	Left      []string `json:"left"`
}

type item struct {
	Path string `json:"path"`
	How  string `json:"how"`
}

func paths(items []item) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.Path)
	}
	slices.Sort(out)
	return out
}

// restore goes to any checkpoint by any rule, and mostly takes that back and does it
// again.
func (w *world) restore(r *rand.Rand, j *job) {
	w.t.Helper()
	to, rule := r.IntN(j.history.Newest()+1), pick(r, []Rule{Keep, Keep, Merge, Overwrite})
	before := w.tree()
	want := j.history.Restore(to, before, rule)
	args := []string{"checkpoint", "restore", j.id, strconv.Itoa(to), "--json", "--yes"}
	if rule != Keep || r.IntN(2) == 0 {
		args = append(args, "--on-conflict", string(rule))
	}
	var preview, done restored
	w.must(&preview, append(slices.Clone(args), "--dry-run")...)
	if diff := w.tree().Compare(before); diff != "" {
		w.fatalf("a dry run changed files:\n%s", diff)
	}
	if len(want.Changed) > 0 && r.IntN(6) == 0 {
		w.killed(r, j, args, before, want, func(what string, want Tree, _ bool) {
			w.t.Helper()
			if diff := w.tree().Compare(want); diff != "" {
				w.fatalf("%s of a restore:\n%s", what, diff)
			}
		})
		return
	}
	answer := w.roost(args...)
	if len(want.Changed) == 0 && len(want.Kept) > 0 && len(args) == 6 {
		if answer.code != 14 {
			w.fatalf("exit code %d although nothing but conflicts was found\n%s", answer.code, answer.err)
		}
		return
	}
	if answer.code != 0 {
		w.fatalf("exit code %d\n%s", answer.code, answer.err)
	}
	w.read(answer, &done)
	after := w.tree()
	w.untouched(j, before, after)
	if diff := after.Compare(want.After); diff != "" {
		for _, p := range after.Differs(want.After) {
			diff += fmt.Sprintf("the story of %q:\n%s", p, j.history.Story(p))
		}
		w.fatalf("to c%d with %s:\n%sthe restore said %+v", to, rule, diff, done)
	}
	for _, said := range []restored{preview, done} {
		if diff := cmp.Diff([][]string{list(want.Changed), list(want.Kept), {}}, [][]string{paths(said.Files), paths(said.Conflicts), paths(said.Lost)}); diff != "" {
			w.fatalf("to c%d with %s it says other files: %s", to, rule, diff)
		}
	}
	w.took(j, moved{want.Changed, want.Changed, before, after})
	w.did.restores++
	w.did.conflicts += len(done.Conflicts)
	for _, i := range done.Files {
		switch Rule(i.How) {
		case Merge:
			w.did.merges++
		case Overwrite:
			w.did.overwrites++
		}
	}
	if len(want.Changed) == 0 || r.IntN(4) == 0 {
		return
	}
	w.did.undone++
	w.must(nil, "undo", j.id, "--json")
	if diff := w.tree().Compare(before); diff != "" {
		w.fatalf("undo of a restore is not what was before:\n%s", diff)
	}
	w.took(j, moved{want.Changed, want.Changed, after, before})
	if r.IntN(2) == 0 {
		w.did.redone++
		w.must(nil, "redo", j.id, "--json")
		if diff := w.tree().Compare(after); diff != "" {
			w.fatalf("redo of a restore is not what the restore was:\n%s", diff)
		}
		w.took(j, moved{want.Changed, want.Changed, before, after})
	}
}

func list(of []string) []string { return append([]string{}, of...) }

// moved is what one restore did to the files that it was to change, and to those of them
// that nobody else changed meanwhile.
type moved struct {
	meant, changed []string
	before, after  Tree
}

// took tells the history what restores did, one after the other.
func (w *world) took(j *job, moves ...moved) {
	w.t.Helper()
	at := 0
	for _, c := range w.fresh(j) {
		m := moves[min(at, len(moves)-1)]
		switch c.Reason {
		case "safety":
			j.history.Look(c.Number, m.meant, m.before)
		case "restored":
			j.history.Change(c.Number, m.changed, m.before, m.after)
			at++
		case "manual":
			j.history.Look(c.Number, j.history.Paths(), w.tree())
		default:
			w.fatalf("a restore saved a checkpoint %+v", c)
		}
		j.history.Save(c.Number)
	}
	last := moves[len(moves)-1]
	for _, p := range last.changed {
		if j.history.known[p] != last.after[p] {
			w.fatalf("no checkpoint knows what a restore made of %s", p)
		}
	}
}

// untouched proves that what the task never touched has the same bytes.
func (w *world) untouched(j *job, before, after Tree) {
	w.t.Helper()
	for _, p := range after.Differs(before) {
		if !j.history.Tracks(p) {
			w.fatalf("%q is none of the task's: it is %s, was %s", p, after[p], before[p])
		}
	}
}
