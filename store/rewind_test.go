package store

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

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// worked is a task of our own with three turns, closed.
func worked(t testing.TB, s *Store, id string) Ref {
	t.Helper()
	k := create(t, s, id)
	for i := 10; i <= 30; i += 10 {
		k := k
		commit(t, k, task.API, apiRow(i, "user", fmt.Sprint("turn ", i)))
		commit(t, k, task.UI, fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"cost\":0.5}"}`, ts0+i))
		commit(t, k, task.UI, uiRow(i+1, fmt.Sprint("reply ", i)))
		cost := int64(500_000)
		check(t, k.Commit(context.Background(), add(k, task.API, apiRow(i+2, "assistant", fmt.Sprint("reply ", i))),
			task.UsageChanged{Input: 10, CostMicros: &cost}, task.FileChanged{Path: fmt.Sprint("f", i), Source: "read_tool"}))
	}
	closeTask(t, k)
	return must[Ref](t)(s.Find(context.Background(), id))
}

// rewind goes back and waits for Roo's files.
func rewind(t testing.TB, s *Store, ref Ref, o RewindOptions) Rewind {
	t.Helper()
	r, finish, err := s.Rewind(context.Background(), ref, o)
	check(t, err)
	check(t, finish(context.Background()))
	return r
}

// bothFiles are the two histories as Roo's files hold them.
func bothFiles(t testing.TB, dir string) string {
	t.Helper()
	return read(t, dir, roofmt.UIName) + "\n" + read(t, dir, roofmt.APIName)
}

func TestARewindGoesBackAndForthToTheByte(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	ref := worked(t, s, "mine")
	whole, state := bothFiles(t, ref.Dir), rows(view(t, s, "mine").State)
	spent := view(t, s, "mine").Summary.Usage

	dry := rewind(t, s, ref, RewindOptions{To: "~2", DryRun: true})
	if got := bothFiles(t, ref.Dir); got != whole {
		t.Fatalf("a dry run wrote: %s", got)
	}
	did := rewind(t, s, ref, RewindOptions{To: "~2"})
	if did.Branch == "" {
		t.Error("what was left has no name")
	}
	did.Branch, did.DryRun = "", true
	if d := cmp.Diff(dry, did); d != "" {
		t.Errorf("the dry run said other things: %s", d)
	}
	if did.Gone != (MessageCounts{4, 3}) || did.Left != (MessageCounts{3, 3}) || did.Turns != 2 || !slices.Equal(did.Files, []string{"f20", "f30"}) || did.Spent.Cost.String() != "1.00" {
		t.Errorf("%+v cost %s", did, did.Spent.Cost)
	}
	short := bothFiles(t, ref.Dir)
	if want := array(uiRow(1, "hello mine"), `{"ts":1700000000010,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"cost\":0.5}"}`, uiRow(11, "reply 10")); !strings.HasPrefix(short, want) {
		t.Errorf("%s", short)
	}
	if got := view(t, s, "mine").Summary.Usage; got.Cost.String() != spent.Cost.String() || got.TokensIn != spent.TokensIn {
		t.Errorf("money fell from %v to %v", spent.Cost, got.Cost)
	}
	for range 2 {
		s = open(t, root) // a restart
		if d := undo(t, s, "mine", false); d.Kind != "rewind" || d.Gone.UI != 4 {
			t.Errorf("took back %+v", d)
		}
		if got := bothFiles(t, ref.Dir); got != whole || rows(view(t, s, "mine").State) != state {
			t.Errorf("not as it was: %s", got)
		}
		if d := undo(t, open(t, root), "mine", true); d.Kind != "rewind" {
			t.Errorf("did again %+v", d)
		}
		if got := bothFiles(t, ref.Dir); got != short {
			t.Errorf("not as it was rewound: %s", got)
		}
	}
}

func TestReferences(t *testing.T) {
	s := open(t, t.TempDir())
	ref := worked(t, s, "mine")
	k := own(t, s, "mine").Task
	commit(t, k, task.UI, uiRow(31, "twin"))
	closeTask(t, k)
	for given, want := range map[string]string{
		"":                   "#6",
		"~1":                 "#6",
		"-1":                 "#6",
		"~":                  "#6",
		"~3":                 "#2",
		"#3":                 "#3",
		"3":                  "#3",
		fmt.Sprint(ts0 + 21): "#5",
		"~4":                 "the model has replied 3 times",
		"~0":                 "turns such as",
		"#0":                 "#1 to #8",
		"#9":                 "#1 to #8",
		"nine":               "a message's number such as #12",
		fmt.Sprint(ts0 + 31): "2 messages have that ts",
		fmt.Sprint(ts0 + 5):  "no message has that ts",
	} {
		r, _, err := s.Rewind(context.Background(), ref, RewindOptions{To: given, DryRun: true})
		var wrong *RefError
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
	if _, _, err := s.Rewind(context.Background(), ref, RewindOptions{To: "~1", Remove: true, DryRun: true}); err == nil {
		t.Error("turns were taken for a message")
	}
}

// When the task goes on after a rewind, what it was is a branch: it is drawn, forked
// and gone on with, and undo does not take the new words with it.
func TestWhatWasLeftIsABranch(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	s := open(t, root)
	ref := worked(t, s, "mine")
	whole := bothFiles(t, ref.Dir)
	left := rewind(t, s, ref, RewindOptions{To: "#4", Edit: "something else"}).Branch
	queued := view(t, s, "mine").State.Queue
	if len(queued) != 1 || queued[0].Text != "something else" {
		t.Fatalf("the new words: %+v", queued)
	}
	k := own(t, s, "mine").Task
	check(t, k.Commit(ctx, task.InputTaken{Input: queued[0].Input}, add(k, task.UI, uiRow(40, "something else"))))
	closeTask(t, k)

	if continued, err := Rooms.Undo(ctx, s, "mine", false, nil); err == nil || continued.Branch != left {
		t.Fatalf("undo: got branch %q, %v; want an error that names %q", continued.Branch, err, left)
	}
	tree := view(t, s, "mine").Branches()
	if len(tree.Items) != 2 || tree.Items[0].Name != HeadBranch || tree.Items[1].Name != left || tree.Items[1].Parent != HeadBranch ||
		tree.Items[1].From != 3 || tree.Items[1].Apart != (MessageCounts{4, 3}) || tree.Items[1].First.Text != "" || tree.Items[1].Why != "edit" {
		t.Errorf("%+v", tree.Items)
	}

	f, finish, err := s.Fork(ctx, ref, ForkOptions{Branch: left, Settings: func(set *task.Settings) error { set.Mode = "ask"; return nil }})
	check(t, err)
	check(t, finish(ctx))
	fork := must[Ref](t)(s.Find(ctx, f.ID))
	if bothFiles(t, fork.Dir) != whole {
		t.Errorf("the fork holds %s", bothFiles(t, fork.Dir))
	}
	v := view(t, s, f.ID)
	if v.Summary.Mode != "ask" || v.Summary.Usage.TokensIn != 0 || v.State.Fork.From != "mine" || v.Branches().Forked.Branch != left {
		t.Errorf("%+v, %+v", v.Summary, v.State.Fork)
	}

	head := bothFiles(t, ref.Dir)
	_, finish, err = s.Switch(ctx, ref, left)
	check(t, err)
	check(t, finish(ctx))
	if bothFiles(t, ref.Dir) != whole {
		t.Errorf("gone to the branch it holds %s", bothFiles(t, ref.Dir))
	}
	if d := undo(t, s, "mine", false); d.Kind != "branch" || bothFiles(t, ref.Dir) != head {
		t.Errorf("back from %+v it holds %s", d, bothFiles(t, ref.Dir))
	}
	var none *BranchError
	if _, _, err := s.Switch(ctx, ref, "b1"); !errors.As(err, &none) || !slices.Contains(none.Candidates, left) {
		t.Errorf("%v", err)
	}
}

// A fork needs the other task for nothing, and takes nothing of it along but its words.
func TestAForkLivesByItself(t *testing.T) {
	ctx := context.Background()
	s := open(t, t.TempDir())
	ref := worked(t, s, "mine")
	base := filepath.Join(ref.Log, "journal.jsonl")
	f, finish, err := s.Fork(ctx, ref, ForkOptions{At: "#3"})
	check(t, err)
	check(t, finish(ctx))
	fork := must[Ref](t)(s.Find(ctx, f.ID))
	if a, b := must[os.FileInfo](t)(os.Stat(base)), must[os.FileInfo](t)(os.Stat(filepath.Join(fork.Log, "base", "journal.jsonl"))); !os.SameFile(a, b) {
		t.Error("the stored bytes are not shared")
	}
	want := rows(view(t, s, f.ID).State)
	if f.Messages != (MessageCounts{3, 3}) || f.Last.Number != 3 || strings.Contains(want, "turn 30") {
		t.Errorf("%+v holds %s", f, want)
	}
	// Both go on.
	k := own(t, s, "mine").Task
	commit(t, k, task.UI, uiRow(90, "the other one"))
	closeTask(t, k)
	k = own(t, s, f.ID).Task
	commit(t, k, task.UI, uiRow(91, "the fork"))
	closeTask(t, k)
	del(t, s, "mine")
	check(t, Rooms.Purge(ctx, s, "mine"))
	s = open(t, s.opt.Root)
	v := view(t, s, f.ID)
	if got := rows(v.State); got != strings.Replace(want, "\n--\n", "\n"+uiRow(91, "the fork")+"\n--\n", 1) {
		t.Errorf("without its base: %s", got)
	}
	// A fork of the fork, rewound.
	again, finish, err := s.Fork(ctx, fork, ForkOptions{})
	check(t, err)
	check(t, finish(ctx))
	second := must[Ref](t)(s.Find(ctx, again.ID))
	rewind(t, s, second, RewindOptions{To: "#3"})
	if d := undo(t, s, again.ID, false); d.Kind != "rewind" || rows(view(t, s, again.ID).State) != rows(v.State) {
		t.Errorf("%+v: %s", d, rows(view(t, s, again.ID).State))
	}
	if a, err := Rooms.Undo(ctx, s, f.ID, false, nil); !a.Nothing {
		t.Errorf("a fork has something to undo: %+v, %v", a, err)
	}
	report := must[CheckReport](t)(Rooms.Check(ctx, s, nil, false))
	if len(report.Damaged) > 0 {
		t.Errorf("doctor: %+v", report.Damaged)
	}
}

// An editor that took a task back while Roost was away did one step: it is read, taken
// in, and undone.
func TestARewindByAnotherProgramIsOneStep(t *testing.T) {
	s, dir, want := continued(t)
	whole := bothFiles(t, dir)
	editor(t, dir, map[string]string{roofmt.UIName: array(fourRows[:2]...), roofmt.APIName: array(threeAPI[:2]...)})
	v := view(t, s, "live-one")
	if len(v.Pending) != 1 || v.Pending[0].Rewound == nil || len(v.State.UI()) != 2 || len(v.State.API()) != 2 {
		t.Fatalf("read: %+v, %s", v.Pending, rows(v.State))
	}
	o := own(t, s, "live-one")
	if len(o.Intakes) != 1 || o.Intakes[0].Rewound == nil || o.Intakes[0].Lacking != 3 {
		t.Fatalf("%+v", o.Intakes)
	}
	closeTask(t, o.Task)
	if got := read(t, dir, roofmt.UIName); got != array(fourRows[:2]...) {
		t.Errorf("the editor's bytes were respelled: %s", got)
	}
	if d := undo(t, s, "live-one", false); d.Kind != "rewind" || d.By == "" || d.Gone.UI != 2 {
		t.Errorf("took back %+v", d)
	}
	if got := rows(view(t, s, "live-one").State); got != want || bothFiles(t, dir) != whole {
		t.Errorf("it is %s", got)
	}
}

// A task in an editor's storage is rewound in place, and its files are what Roo would
// have left: whole lists, no tag whose marker is gone, and an index of ours untouched.
func TestAnEditorsTaskIsRewoundInPlace(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	mark := fmt.Sprintf(`{"role":"user","content":"[marker]","ts":%d,"isTruncationMarker":true,"truncationId":"T"}`, ts0+3)
	tagged := strings.TrimSuffix(apiRow(2, "assistant", "done so far"), "}") + `,"truncationParent":"T"}`
	row := fmt.Sprintf(`{"ts":%d,"type":"say","say":"sliding_window_truncation","contextTruncation":{"truncationId":"T"}}`, ts0+4)
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "done so far"), row, uiRow(5, "five")))
	write(t, dir, roofmt.APIName, array(apiRow(1, "user", "do it"), tagged, mark, apiRow(4, "user", "four"), apiRow(5, "assistant", "five")))
	before := bothFiles(t, dir)
	s := open(t, t.TempDir(), storage)
	ref := must[Ref](t)(s.Find(context.Background(), "theirs"))
	rewind(t, s, ref, RewindOptions{To: "#3"})
	want := array(uiRow(1, "do it"), uiRow(2, "done so far")) + "\n" + array(apiRow(1, "user", "do it"), apiRow(2, "assistant", "done so far"))
	if got := bothFiles(t, dir); got != want {
		t.Errorf("%s", got)
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		if !json.Valid([]byte(read(t, dir, name))) {
			t.Errorf("%s is no JSON", name)
		}
	}
	undo(t, s, ref.Source+":theirs", false)
	if got := bothFiles(t, dir); got != before {
		t.Errorf("not as it was: %s", got)
	}
}

// moveHead is what a child does before it is killed.
func moveHead(ctx context.Context, s *Store, ref Ref, what string) error {
	var finish func(context.Context) error
	var err error
	switch what {
	case "rewind":
		_, finish, err = s.Rewind(ctx, ref, RewindOptions{To: "~2"})
	case "undo":
		_, err = Rooms.Undo(ctx, s, ref.Source+":"+ref.ID, false, nil)
	case "switch":
		_, finish, err = s.Switch(ctx, ref, os.Getenv("STORE_TEST_BRANCH"))
	case "fork":
		_, finish, err = s.Fork(ctx, ref, ForkOptions{At: "#3"})
	}
	if err == nil && finish != nil {
		err = finish(ctx)
	}
	return err
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
			s := open(t, root)
			ref := worked(t, s, "mine")
			whole, state := bothFiles(t, ref.Dir), rows(view(t, s, "mine").State)
			branch := rewind(t, s, ref, RewindOptions{To: "~2"}).Branch
			short, cut := bothFiles(t, ref.Dir), rows(view(t, s, "mine").State)
			before, after := [2]string{cut, short}, [2]string{state, whole}
			if c.do == "rewind" {
				undo(t, s, "mine", false)
				before, after = after, before
			}
			if out, err := process(t, "move", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=mine", "STORE_TEST_DO="+c.do, "STORE_TEST_BRANCH="+branch, "ROOST_FAILPOINT="+c.at).CombinedOutput(); err == nil {
				t.Fatalf("not killed: %s", out)
			}
			s = open(t, root)
			got := rows(view(t, s, "mine").State)
			if c.do == "fork" {
				if got != before[0] {
					t.Errorf("the other task: %s", got)
				}
				for _, item := range must[Listing](t)(s.List(context.Background(), Filter{})).Items {
					if v := view(t, s, item.ID); len(v.Summary.Damaged) > 0 || len(v.State.UI()) != 3 || len(v.State.API()) == 0 {
						t.Errorf("%s: %+v, %s", item.ID, v.Summary.Damaged, rows(v.State))
					}
				}
				return
			}
			if got != before[0] && got != after[0] {
				t.Fatalf("between: %s", got)
			}
			closeTask(t, own(t, s, "mine").Task)
			if now := bothFiles(t, ref.Dir); got == before[0] && now != before[1] || got == after[0] && now != after[1] {
				t.Errorf("Roo's files say %s", now)
			}
		})
	}
}
