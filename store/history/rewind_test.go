package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// A person who rewinds a task hundreds of times still sees its page at once: the work for the tree of branches grows
// with their number, not with its square.
func TestManyBranchesAreListedAtOnce(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	k := storetest.Own(t, s, "mine").Task
	for n := range 20 {
		storetest.Commit(t, k, task.UI, storetest.UIRow(40+n, "before"))
	}
	storetest.Close(t, k)
	var allocs []float64
	for n := range 120 {
		k := storetest.Own(t, s, "mine").Task
		storetest.Commit(t, k, task.UI, storetest.UIRow(60+n, fmt.Sprint("way ", n)))
		storetest.Close(t, k)
		rewind(t, s, ref, history.RewindOptions{To: "#27"})
		if v := storetest.View(t, s, "mine"); n%60 == 59 {
			if got := len(history.Branches(v).Items); got != n+2 {
				t.Fatalf("got %d branches, want the head and %d", got, n+1)
			}
			allocs = append(allocs, testing.AllocsPerRun(1, func() { history.Branches(v) }))
		}
	}
	if allocs[1] > 2.5*allocs[0] {
		t.Errorf("got %.0f allocations for 60 branches and %.0f for 120, want at most 2.5 times as many", allocs[0], allocs[1])
	}
}

// worked is a task of our own with three turns, closed.
func worked(t testing.TB, s *store.Store, id string) store.Ref {
	t.Helper()
	k := storetest.Create(t, s, id)
	for i := 10; i <= 30; i += 10 {
		k := k
		storetest.Commit(t, k, task.API, storetest.APIRow(i, "user", fmt.Sprint("turn ", i)))
		storetest.Commit(t, k, task.UI, fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"cost\":0.5}"}`, storetest.TS0+i))
		storetest.Commit(t, k, task.UI, storetest.UIRow(i+1, fmt.Sprint("reply ", i)))
		cost := int64(500_000)
		storetest.Check(t, k.Commit(context.Background(), storetest.Message(k, task.API, storetest.APIRow(i+2, "assistant", fmt.Sprint("reply ", i))),
			task.UsageChanged{Input: 10, CostMicros: &cost}, task.FileChanged{Path: fmt.Sprint("f", i), Source: "read_tool"}))
	}
	storetest.Close(t, k)
	return storetest.Must[store.Ref](t)(s.Find(context.Background(), id))
}

// rewind goes back and waits for Roo's files.
func rewind(t testing.TB, s *store.Store, ref store.Ref, o history.RewindOptions) api.RewindResult {
	t.Helper()
	r, finish, err := history.Rewind(context.Background(), s, ref, o)
	storetest.Check(t, err)
	storetest.Check(t, finish(context.Background()))
	return r
}

// bothFiles are the two histories as Roo's files hold them.
func bothFiles(t testing.TB, dir string) string {
	t.Helper()
	return storetest.Read(t, dir, roofmt.UIName) + "\n" + storetest.Read(t, dir, roofmt.APIName)
}

// A task whose rows are lost, and are made of the model's messages, is rewound and forked at the messages that it shows.
func TestATaskOfMadeRowsIsRewoundWithItsMessages(t *testing.T) {
	made := func(messages [][]byte) [][]byte { // one row for each message
		return api.Each(messages, func(raw []byte) []byte {
			_, text, _ := strings.Cut(string(raw), `"text":`)
			text, _, _ = strings.Cut(text, "}")
			kind := "text"
			if strings.Contains(text, "words") && !strings.Contains(text, "first") {
				kind = "user_feedback"
			}
			return []byte(`{"ts":0,"type":"say","say":"` + kind + `","text":` + text + `,"inferred":true}`)
		})
	}
	var messages []string
	for i, text := range []string{"the first words", "one reply", "other words", "two replies", "words of the end", "three replies"} {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}]}`, role, text))
	}
	for _, tool := range []string{"roo", "saoudrizwan.claude-dev"} { // one goes on in place, the other one as a copy
		storage := filepath.Join(t.TempDir(), tool)
		storetest.Write(t, filepath.Join(storage, "tasks", "1730047571772"), roofmt.APIName, storetest.Array(messages...))
		s := storetest.OpenWith(t, store.Options{Root: t.TempDir(), Sources: []string{storage}, Rows: made})
		ref := storetest.Find(t, s, "1730047571772")
		for _, c := range []struct {
			to   string
			left int
		}{{"~1", 5}, {"~2", 3}, {"#5", 4}, {"#2", 1}} {
			want := api.MessageCounts{UI: c.left, API: c.left}
			dry := rewind(t, s, ref, history.RewindOptions{To: c.to, DryRun: true})
			did := rewind(t, s, ref, history.RewindOptions{To: c.to})
			if dry.Left != want || did.Left != want {
				t.Errorf("%s to %s: got %+v left, %+v by the dry run, want %+v", tool, c.to, did.Left, dry.Left, want)
			}
			_, _, err := actions.Undo(t.Context(), s, did.ID, actions.Options{})
			storetest.Check(t, err)
		}
		other := storetest.OpenWith(t, store.Options{Root: t.TempDir(), Sources: []string{storage}, Rows: made})
		fork, finish, err := history.Fork(t.Context(), other, storetest.Find(t, other, "1730047571772"), history.ForkOptions{At: "#3"})
		storetest.Check(t, err)
		storetest.Check(t, finish(t.Context()))
		if want := (api.MessageCounts{UI: 3, API: 3}); fork.Messages != want {
			t.Errorf("%s: got a fork with %+v, want %+v", tool, fork.Messages, want)
		}
	}
}

func TestARewindGoesBackAndForthToTheByte(t *testing.T) {
	root := t.TempDir()
	s := storetest.Open(t, root)
	ref := worked(t, s, "mine")
	whole, state := bothFiles(t, ref.Dir), storetest.Rows(storetest.View(t, s, "mine").State)
	spent := storetest.View(t, s, "mine").Summary.Usage

	dry := rewind(t, s, ref, history.RewindOptions{To: "~2", DryRun: true})
	if got := bothFiles(t, ref.Dir); got != whole {
		t.Fatalf("a dry run wrote: %s", got)
	}
	did := rewind(t, s, ref, history.RewindOptions{To: "~2"})
	if did.Branch == "" {
		t.Error("what was left has no name")
	}
	did.Branch, did.DryRun = "", true
	if d := cmp.Diff(dry, did); d != "" {
		t.Errorf("the dry run said other things: %s", d)
	}
	if did.Gone != (api.MessageCounts{UI: 4, API: 3}) || did.Left != (api.MessageCounts{UI: 3, API: 3}) || did.Turns != 2 || !slices.Equal(did.Files, []string{"f20", "f30"}) || did.Spent.Cost.String() != "1.00" {
		t.Errorf("%+v cost %s", did, did.Spent.Cost)
	}
	short := bothFiles(t, ref.Dir)
	if want := storetest.Array(storetest.UIRow(1, "hello mine"), `{"ts":1700000000010,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"cost\":0.5}"}`, storetest.UIRow(11, "reply 10")); !strings.HasPrefix(short, want) {
		t.Errorf("got %s, want strings.HasPrefix(short, want)", short)
	}
	if got := storetest.View(t, s, "mine").Summary.Usage; got.Cost.String() != spent.Cost.String() || got.TokensIn != spent.TokensIn {
		t.Errorf("money fell from %v to %v", spent.Cost, got.Cost)
	}
	for range 2 {
		s = storetest.Open(t, root) // a restart
		if d := storetest.Undo(t, s, "mine", false); d.Kind != "rewind" || d.Gone.UI != 4 {
			t.Errorf("took back %+v", d)
		}
		if got := bothFiles(t, ref.Dir); got != whole || storetest.Rows(storetest.View(t, s, "mine").State) != state {
			t.Errorf("not as it was: %s", got)
		}
		if d := storetest.Undo(t, storetest.Open(t, root), "mine", true); d.Kind != "rewind" {
			t.Errorf("did again %+v", d)
		}
		if got := bothFiles(t, ref.Dir); got != short {
			t.Errorf("not as it was rewound: %s", got)
		}
	}
}

func TestReferences(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	k := storetest.Own(t, s, "mine").Task
	storetest.Commit(t, k, task.UI, storetest.UIRow(31, "twin"))
	storetest.Close(t, k)
	for given, want := range map[string]string{
		"":                             "#6",
		"~1":                           "#6",
		"-1":                           "#6",
		"~":                            "#6",
		"~3":                           "#2",
		"#3":                           "#3",
		"3":                            "#3",
		fmt.Sprint(storetest.TS0 + 21): "#5",
		"~4":                           "the model has replied 3 times",
		"~0":                           "turns such as",
		"#0":                           "#1 to #8",
		"#9":                           "#1 to #8",
		"nine":                         "a message's number such as #12",
		fmt.Sprint(storetest.TS0 + 31): "2 messages have that ts",
		fmt.Sprint(storetest.TS0 + 5):  "no message has that ts",
	} {
		r, _, err := history.Rewind(context.Background(), s, ref, history.RewindOptions{To: given, DryRun: true})
		var wrong *history.ReferenceError
		switch {
		case strings.HasPrefix(want, "#") && len(want) == 2:
			if err != nil || r.To == nil || fmt.Sprint("#", r.To.Number) != want {
				t.Errorf("%q is %+v, %v; want %s", given, r.To, err, want)
			}
		case !errors.As(err, &wrong) || !strings.Contains(wrong.Why, want):
			t.Errorf("%q: %v", given, err)
		case len(wrong.Candidates) == 0 && given != "~0":
			t.Errorf("%q has no candidates", given)
		}
	}
	if _, _, err := history.Rewind(context.Background(), s, ref, history.RewindOptions{To: "~1", Remove: true, DryRun: true}); err == nil {
		t.Error("turns were taken for a message")
	}
}

// Only a message can stay: turns and a checkpoint name a moment, and all that came after it goes.
func TestOnlyAMessageIsKept(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	k := storetest.Own(t, s, "mine").Task
	storetest.Check(t, k.Commit(context.Background(), task.CheckpointSaved{Number: 1, Reason: task.ReasonManual}))
	storetest.Commit(t, k, task.UI, storetest.UIRow(41, "after the checkpoint"))
	storetest.Commit(t, k, task.UI, storetest.UIRow(42, "the end"))
	storetest.Close(t, k)
	for to, want := range map[string]struct {
		first int
		kept  bool
	}{"#8": {9, true}, "c1": {8, false}, "~1": {6, false}} {
		r := rewind(t, s, ref, history.RewindOptions{To: to, Keep: true, DryRun: true})
		if r.To == nil || r.To.Number != want.first || r.Kept != want.kept {
			t.Errorf("%s: got from %+v, kept %t, want from #%d, kept %t", to, r.To, r.Kept, want.first, want.kept)
		}
	}
}

// When the task goes on after a rewind, what it was is a branch: it is drawn, forked
// and gone on with, and undo does not take the new words with it.
func TestWhatWasLeftIsABranch(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	s := storetest.Open(t, root)
	ref := worked(t, s, "mine")
	whole := bothFiles(t, ref.Dir)
	left := rewind(t, s, ref, history.RewindOptions{To: "#4", Edit: "something else"}).Branch
	queued := storetest.View(t, s, "mine").State.Queue
	if len(queued) != 1 || queued[0].Text != "something else" {
		t.Fatalf("the new words: %+v", queued)
	}
	k := storetest.Own(t, s, "mine").Task
	storetest.Check(t, k.Commit(ctx, task.InputTaken{Input: queued[0].Input}, storetest.Message(k, task.UI, storetest.UIRow(40, "something else"))))
	storetest.Close(t, k)

	_, _, err := actions.Undo(ctx, s, "mine", actions.Options{})
	var went *actions.ContinuedError
	if !errors.As(err, &went) || went.Branch != left {
		t.Fatalf("undo: %v", err)
	}
	tree := history.Branches(storetest.View(t, s, "mine"))
	if len(tree.Items) != 2 || tree.Items[0].Name != history.HeadBranch || tree.Items[1].Name != left || tree.Items[1].Parent != history.HeadBranch ||
		tree.Items[1].From != 3 || tree.Items[1].Apart != (api.MessageCounts{UI: 4, API: 3}) || tree.Items[1].First.Text != "" || tree.Items[1].Why != "edit" {
		t.Errorf("%+v", tree.Items)
	}

	f, finish, err := history.Fork(ctx, s, ref, history.ForkOptions{Branch: left, Settings: func(set *task.Settings) error { set.Mode = "ask"; return nil }})
	storetest.Check(t, err)
	storetest.Check(t, finish(ctx))
	fork := storetest.Must[store.Ref](t)(s.Find(ctx, f.ID))
	if bothFiles(t, fork.Dir) != whole {
		t.Errorf("the fork holds %s", bothFiles(t, fork.Dir))
	}
	v := storetest.View(t, s, f.ID)
	if v.Summary.Mode != "ask" || v.Summary.Usage.TokensIn != 0 || v.State.Fork.From != "mine" || history.Branches(v).Forked.Branch != left {
		t.Errorf(`got %+v, %+v, want v.Summary.Mode = "ask" and v.Summary.Usage.TokensIn = 0 and v.State.Fork.From = "mine" and history.Branches(v).Forked.Branch = left`,
			v.Summary, v.State.Fork)
	}

	head := bothFiles(t, ref.Dir)
	_, finish, err = history.Switch(ctx, s, ref, left)
	storetest.Check(t, err)
	storetest.Check(t, finish(ctx))
	if bothFiles(t, ref.Dir) != whole {
		t.Errorf("gone to the branch it holds %s", bothFiles(t, ref.Dir))
	}
	if d := storetest.Undo(t, s, "mine", false); d.Kind != "branch" || bothFiles(t, ref.Dir) != head {
		t.Errorf("back from %+v it holds %s", d, bothFiles(t, ref.Dir))
	}
	var none *history.BranchError
	if _, _, err := history.Switch(ctx, s, ref, "b1"); !errors.As(err, &none) || !slices.Contains(none.Candidates, left) {
		t.Errorf("got %v, want errors.As(err, &none) and slices.Contains(none.Candidates, left)", err)
	}
}

// A fork needs the other task for nothing, and takes nothing of it along but its words.
func TestAForkLivesByItself(t *testing.T) {
	ctx := context.Background()
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	base := filepath.Join(ref.Log, "journal.jsonl")
	f, finish, err := history.Fork(ctx, s, ref, history.ForkOptions{At: "#3"})
	storetest.Check(t, err)
	storetest.Check(t, finish(ctx))
	fork := storetest.Must[store.Ref](t)(s.Find(ctx, f.ID))
	if a, b := storetest.Must[os.FileInfo](t)(os.Stat(base)), storetest.Must[os.FileInfo](t)(os.Stat(filepath.Join(fork.Log, "base", "journal.jsonl"))); !os.SameFile(a, b) {
		t.Error("the stored bytes are not shared")
	}
	want := storetest.Rows(storetest.View(t, s, f.ID).State)
	if f.Messages != (api.MessageCounts{UI: 3, API: 3}) || f.Last.Number != 3 || strings.Contains(want, "turn 30") {
		t.Errorf("%+v holds %s", f, want)
	}
	// Both go on.
	k := storetest.Own(t, s, "mine").Task
	storetest.Commit(t, k, task.UI, storetest.UIRow(90, "the other one"))
	storetest.Close(t, k)
	k = storetest.Own(t, s, f.ID).Task
	storetest.Commit(t, k, task.UI, storetest.UIRow(91, "the fork"))
	storetest.Close(t, k)
	_, err = trash.Delete(ctx, s, ref)
	storetest.Check(t, err)
	_, err = trash.Purge(ctx, s, "mine")
	storetest.Check(t, err)
	s = storetest.Open(t, s.Root())
	v := storetest.View(t, s, f.ID)
	if got := storetest.Rows(v.State); got != strings.Replace(want, "\n--\n", "\n"+storetest.UIRow(91, "the fork")+"\n--\n", 1) {
		t.Errorf("without its base: %s", got)
	}
	// A fork of the fork, rewound.
	again, finish, err := history.Fork(ctx, s, fork, history.ForkOptions{})
	storetest.Check(t, err)
	storetest.Check(t, finish(ctx))
	second := storetest.Must[store.Ref](t)(s.Find(ctx, again.ID))
	rewind(t, s, second, history.RewindOptions{To: "#3"})
	if d := storetest.Undo(t, s, again.ID, false); d.Kind != "rewind" || storetest.Rows(storetest.View(t, s, again.ID).State) != storetest.Rows(v.State) {
		t.Errorf("got %+v: %s, want d.Kind = \"rewind\" and storetest.Rows(storetest.View(t, s, again.ID).State) = storetest.Rows(v.State)",
			d, storetest.Rows(storetest.View(t, s, again.ID).State))
	}
	if _, _, err := actions.Undo(ctx, s, f.ID, actions.Options{}); !errors.Is(err, actions.ErrNothing) {
		t.Errorf("a fork has something to take back: %v", err)
	}
	report := storetest.Must[api.Checkup](t)(doctor.Check(ctx, s, nil, doctor.Options{}))
	if len(report.Damaged) > 0 {
		t.Errorf("doctor: %+v", report.Damaged)
	}
}

// A task in an editor's storage is rewound in place, and its files are what Roo would
// have left: whole lists, no tag whose marker is gone, and an index of ours untouched.
func TestAnEditorsTaskIsRewoundInPlace(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "theirs")
	mark := fmt.Sprintf(`{"role":"user","content":"[marker]","ts":%d,"isTruncationMarker":true,"truncationId":"T"}`, storetest.TS0+3)
	tagged := strings.TrimSuffix(storetest.APIRow(2, "assistant", "done so far"), "}") + `,"truncationParent":"T"}`
	row := fmt.Sprintf(`{"ts":%d,"type":"say","say":"sliding_window_truncation","contextTruncation":{"truncationId":"T"}}`, storetest.TS0+4)
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far"), row, storetest.UIRow(5, "five")))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(1, "user", "do it"), tagged, mark, storetest.APIRow(4, "user", "four"), storetest.APIRow(5, "assistant", "five")))
	before := bothFiles(t, dir)
	s := storetest.Open(t, t.TempDir(), storage)
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "theirs"))
	rewind(t, s, ref, history.RewindOptions{To: "#3"})
	want := storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far")) + "\n" + storetest.Array(storetest.APIRow(1, "user", "do it"), storetest.APIRow(2, "assistant", "done so far"))
	if got := bothFiles(t, dir); got != want {
		t.Errorf("got %s, want got = %v", got, want)
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		if !json.Valid([]byte(storetest.Read(t, dir, name))) {
			t.Errorf("%s is no JSON", name)
		}
	}
	storetest.Undo(t, s, ref.Source+":theirs", false)
	if got := bothFiles(t, dir); got != before {
		t.Errorf("not as it was: %s", got)
	}
}

// Killed anywhere in a rewind, an undo, a switch or a fork, a task is as before or as
// after, never between; and the next command brings Roo's files there too.
func TestKilledWhileTheHeadMoves(t *testing.T) {
	for _, c := range []struct{ do, at string }{
		{"rewind", "rewind.before"}, {"rewind", "rewind.committed"}, {"rewind", "rewind.synced"}, {"rewind", "project.temp"}, {"rewind", "project.renamed"},
		{"undo", "undo.before"}, {"undo", "undo.committed"}, {"undo", "undo.synced"}, {"undo", "project.renamed"},
		{"switch", "switch.committed"}, {"switch", "switch.synced"},
		{"fork", "fork.before"}, {"fork", "fork.begun"}, {"fork", "fork.written"}, {"fork", "fork.made"}, {"fork", "project.temp"},
	} {
		t.Run(c.do+" at "+c.at, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := storetest.Open(t, root)
			ref := worked(t, s, "mine")
			whole, state := bothFiles(t, ref.Dir), storetest.Rows(storetest.View(t, s, "mine").State)
			branch := rewind(t, s, ref, history.RewindOptions{To: "~2"}).Branch
			short, cut := bothFiles(t, ref.Dir), storetest.Rows(storetest.View(t, s, "mine").State)
			before, after := [2]string{cut, short}, [2]string{state, whole}
			if c.do == "rewind" {
				storetest.Undo(t, s, "mine", false)
				before, after = after, before
			}
			killed(t, root, c.do, branch, c.at)
			s = storetest.Open(t, root)
			got := storetest.Rows(storetest.View(t, s, "mine").State)
			if c.do == "fork" {
				if got != before[0] {
					t.Errorf("the other task: %s", got)
				}
				for _, item := range storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{})).Items {
					if v := storetest.View(t, s, item.ID); len(v.Summary.Damaged) > 0 || len(v.State.UI()) != 3 || len(v.State.API()) == 0 {
						t.Errorf("%s: got %+v, %s, want len(v.Summary.Damaged) <= 0 and len(v.State.UI()) = 3 and len(v.State.API()) != 0",
							item.ID, v.Summary.Damaged, storetest.Rows(v.State))
					}
				}
				return
			}
			if got != before[0] && got != after[0] {
				t.Fatalf("between: %s", got)
			}
			storetest.Close(t, storetest.Own(t, s, "mine").Task)
			if now := bothFiles(t, ref.Dir); got == before[0] && now != before[1] || got == after[0] && now != after[1] {
				t.Errorf("Roo's files say %s", now)
			}
		})
	}
}
