package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// memoryStore is checkpoints.Store over a folder, in memory.
type memoryStore struct {
	g      *fileBench
	fail   func(op string) error
	unheld string
	hidden string
	open   int              // surveys that nobody ended
	kept   map[string]*look // of calls, as they outlive a kill
	later  string           // what changed after the kill, by name
	long   bool             // commands run for long
}

func (s *memoryStore) Name() string { return "store" }

func (s *memoryStore) failed(op string) error {
	s.g.note("%s", op)
	if s.fail == nil {
		return nil
	}
	return s.fail(op)
}

func (s *memoryStore) Hold(_ context.Context, paths []string) (map[string]api.FileVersion, error) {
	if err := s.failed("hold"); err != nil {
		return nil, err
	}
	out := map[string]api.FileVersion{}
	for _, p := range paths {
		if dir, err := filepath.EvalSymlinks(filepath.Join(s.g.dir, filepath.Dir(p))); err == nil { // recorded is where a path leads
			at, _ := filepath.EvalSymlinks(s.g.dir)
			dir, _ = filepath.Rel(at, dir)
			p = filepath.Join(dir, filepath.Base(p))
		}
		out[p] = s.at(p)
	}
	return out, nil
}

func (s *memoryStore) at(path string) api.FileVersion {
	data, err := os.ReadFile(filepath.Join(s.g.dir, path))
	if err != nil {
		return api.FileVersion{Kind: api.KindGone}
	}
	hash := workspace.HashOf(data)
	v := api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: int64(len(data)), Hash: hash, Blob: hash[:40]}
	if strings.HasPrefix(path, "big") {
		v.Blob = ""
	}
	return v
}

func (s *memoryStore) Save(_ context.Context, c task.CheckpointSaved, files map[string]api.FileVersion) (string, string, error) {
	for _, f := range c.Files {
		if files[f.Path] != f.Now {
			s.g.t.Errorf("checkpoint %d: the state lacks %s", c.Number, f.Path)
		}
	}
	return "store", fmt.Sprintf("%040d", c.Number), s.failed("keep")
}

type look struct {
	s    *memoryStore
	was  map[string]api.FileVersion
	call string
	done bool
}

func (s *memoryStore) Survey(_ context.Context, _ []string, call string) (checkpoints.Survey, error) {
	if err := s.failed("survey"); err != nil {
		return nil, err
	}
	s.open++
	l := &look{s: s, was: s.all(), call: call}
	if call != "" {
		s.kept = map[string]*look{call: l}
	}
	return l, nil
}

func (s *memoryStore) Interrupted(_ context.Context, call string) (checkpoints.Survey, error) {
	l := s.kept[call]
	if err := s.failed("interrupted"); l == nil || err != nil {
		return nil, err
	}
	s.open++
	return &look{s: s, was: l.was, call: call}, nil
}

func (s *memoryStore) all() map[string]api.FileVersion {
	out := map[string]api.FileVersion{}
	entries, _ := os.ReadDir(s.g.dir)
	for _, e := range entries {
		out[e.Name()] = s.at(e.Name())
	}
	return out
}

func (l *look) Unheld() string { return l.s.unheld }
func (l *look) Hidden() string { return l.s.hidden }

func (l *look) Close() {
	if !l.done {
		l.s.open--
	}
	l.done = true
}

func (l *look) Done() {
	l.Close()
	delete(l.s.kept, l.call)
}

func (l *look) Whose(changes []task.CheckpointFile, ran bool) (during, doubt, since []task.CheckpointFile) {
	for _, f := range changes {
		if f.Path == l.s.later && !ran {
			since = append(since, f)
		} else {
			during = append(during, f)
		}
	}
	if l.s.long {
		return nil, during, since
	}
	return during, nil, since
}

func (l *look) Changes(context.Context) ([]task.CheckpointFile, error) {
	defer l.Close()
	now := l.s.all()
	both := maps.Clone(l.was)
	maps.Copy(both, now)
	var out []task.CheckpointFile
	for _, path := range slices.Sorted(maps.Keys(both)) {
		was, is := l.s.was(l.was, path), l.s.was(now, path)
		if !was.Same(is) {
			out = append(out, task.CheckpointFile{Path: path, Was: &was, Now: is})
		}
	}
	return out, l.s.failed("changes")
}

func (s *memoryStore) was(all map[string]api.FileVersion, path string) api.FileVersion {
	if v, is := all[path]; is {
		return v
	}
	return api.FileVersion{Kind: api.KindGone}
}

// newKeptBench makes a fileBench with checkpoints, and a tool that writes the text of its call into a file.
func newKeptBench(t *testing.T, turns ...turn) (*fileBench, *memoryStore) {
	g := newFileBench(t, turns...)
	s := &memoryStore{g: g}
	g.tool("act").run = func(_ context.Context, _ tool.Output, what string) (tool.Result, error) {
		if name, text, ok := strings.Cut(what, "="); ok {
			g.put(name, text)
		}
		return tool.Result{Text: "done"}, nil
	}
	g.agent.Host.Checkpoints = s
	t.Cleanup(func() {
		if s.open != 0 {
			t.Errorf("%d surveys were not ended", s.open)
		}
	})
	return g, s
}

func (g *fileBench) saved() (out []string) {
	for _, c := range g.disk.state.Checkpoints {
		text := fmt.Sprintf("c%d %s", c.Number, c.Reason)
		for _, f := range c.Files {
			text += " " + f.Path
			if f.Was != nil {
				text += "*"
			}
		}
		out = append(out, text)
	}
	return out
}

func (g *fileBench) saves(want ...string) {
	g.t.Helper()
	if diff := cmp.Diff(want, g.saved()); diff != "" {
		g.t.Error(diff)
	}
}

// What stood there is durable, and in the commit that begins the write; what the turn
// made of it is in the commit that tells the results, or of the next call that changes it.
// A command's changes come with its outcome, apart from what calls before it wrote.
func TestWhoTakesCheckpoints(t *testing.T) {
	g, _ := newKeptBench(t,
		turn{calls: []call{write("w1", "a", "1\n"), write("w2", "a", "2\n"), write("w3", "b", "b\n")}},
		turn{calls: []call{write("w4", "a", "3\n"), use("c1", "act", "a=4\n"), use("c2", "act", "nothing"), write("w5", "c", "c\n")}},
		turn{calls: []call{use("l", "look", "x")}},
	)
	g.put("a", "0\n")
	want(t, g.run("go"), "completed", "")
	g.saves("c1 before a", "c2 turn a", "c3 before b", "c4 turn a b", "c5 turn a", "c6 command a", "c7 before c", "c8 turn c")
	if c := g.disk.state.Checkpoints[1]; c.Call != "w2" {
		t.Errorf("what the first of two edits left is bound to %q", c.Call)
	}
	last := uint64(0)
	for _, c := range g.disk.state.Checkpoints {
		if c.Message < last || c.Run == "" || c.Title == "" {
			t.Errorf("%+v follows message %d", c, last)
		}
		last = c.Message
	}
	trace := strings.Join(g.trace, "\n")
	for _, in := range []string{
		"hold\nkeep\ncommit +ui checkpoint.saved started:w1",
		"checkpoint.saved started:w3", "checkpoint.saved started:c1", "ok:c1 checkpoint.saved",
	} {
		if !strings.Contains(trace, in) {
			t.Errorf("%q is not in\n%s", in, trace)
		}
	}
	// The state before each reply is that of the newest checkpoint up to its message.
	for i, n := range map[int]int{1: 1, 3: 4, 5: 8} {
		if got := g.disk.state.CheckpointAt(g.disk.state.API()[i].ID); got != n {
			t.Errorf("before message %d of the model's history the files are c%d, want c%d", i, got, n)
		}
	}
}

// What a person changes after a call wrote it is not the call's, also when the call named the file through a link.
func TestWhatOthersChangeMeanwhileIsTheirs(t *testing.T) {
	for _, name := range []string{"a", "linked/a"} {
		g, _ := newKeptBench(t, turn{calls: []call{write("w1", name, "1\n"), write("w2", "linked/b", "b\n"), use("l", "look", "x")}})
		if err := os.Symlink(".", filepath.Join(g.dir, "linked")); err != nil {
			t.Skip("links cannot be made here")
		}
		g.put("a", "0\n")
		g.put("b", "0\n")
		g.tool("look").run = func(context.Context, tool.Output, string) (tool.Result, error) {
			g.put("a", "by a person\n")
			return tool.Result{Text: "seen"}, nil
		}
		want(t, g.run("go"), "completed", "")
		g.saves("c1 before a", "c2 before b", "c3 turn b", "c4 others a")
	}
}

// A turn that writes nothing costs nothing.
func TestNoWritesNoCheckpoints(t *testing.T) {
	g, _ := newKeptBench(t, turn{calls: []call{use("l", "look", "x")}}, turn{text: "words", calls: []call{use("m", "look", "y")}})
	want(t, g.run("go"), "completed", "")
	for _, entry := range g.trace {
		if slices.Contains([]string{"hold", "survey", "keep", "changes"}, entry) {
			t.Errorf("%s was done", entry)
		}
	}
}

// A write whose file cannot be kept is refused; a command is not, nor is its outcome
// lost. Both are told, and the next one is tried again.
func TestTroubleWithCheckpoints(t *testing.T) {
	g, s := newKeptBench(t,
		turn{calls: []call{write("w1", "a", "1\n")}}, turn{calls: []call{use("c1", "act", "b=1\n")}}, turn{calls: []call{write("w2", "a", "1\n")}})
	full := true
	s.fail = func(op string) error {
		if full {
			return errors.New("the disk is full")
		}
		return nil
	}
	g.at(3, func() { full = false })
	want(t, g.run("go"), "completed", "")
	if got := g.result("w1"); !strings.Contains(got, "the disk is full") || !strings.Contains(got, "the file was not changed") {
		t.Error(got)
	}
	g.holds("a", "1\n")
	g.holds("b", "1\n")
	g.saves("c1 before a", "c2 turn a")
	if told := strings.Join(g.notices, "\n"); strings.Count(told, "could not be surveyed") != 1 || !strings.Contains(told, "write_to_file was refused") {
		t.Error(told)
	}
}

// A workspace without checkpoints is told of once, and nothing is held up.
func TestNoCheckpointsHere(t *testing.T) {
	g, s := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), use("c1", "act", "b=1\n")}}, turn{calls: []call{write("w2", "c", "1\n")}})
	s.fail = func(string) error { return fmt.Errorf("%w: it is the home folder", checkpoints.ErrNone) }
	want(t, g.run("go"), "completed", "")
	g.holds("c", "1\n")
	g.saves()
	if told := strings.Join(g.notices, "\n"); strings.Count(told, "it is the home folder") != 1 {
		t.Error(told)
	}
}

// What could not be brought back is part of the question, as it was asked; a row keeps
// its shape. An answer counts also when other files are at stake after a restart.
func TestWhatIsLostIsAsked(t *testing.T) {
	g, s := newKeptBench(t, turn{calls: []call{write("w1", "big", "1\n"), use("c1", "act", "a=1\n")}})
	g.put("big", "0\n")
	s.unheld = "2 files (1.2 GB) that could not be brought back: x, y"
	g.agent.Task.Policy = approval.Policy{Mode: approval.ModeAsk}
	g.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
		g.asked = append(g.asked, q)
		if q.Call == "c1" {
			return agent.Answer{}, agent.ErrUnattended
		}
		return agent.Answer{Approve: yes()}, nil
	})
	want(t, g.run("go"), "waiting", "")
	if len(g.asked) != 2 || !strings.HasSuffix(g.asked[0].Text, "\nit changes what no checkpoint brings back: big (2 B)") ||
		g.asked[1].Text != "act a=1\n\nit may change 2 files (1.2 GB) that could not be brought back: x, y" {
		t.Fatalf("%+v", g.asked)
	}
	for _, m := range g.disk.state.UI() {
		if strings.Contains(m.Text(), "brought back") {
			t.Errorf("a row says %q", m.Text())
		}
	}
	s.unheld = "3 files (1.3 GB) that could not be brought back: x, y, z"
	g.agent.Host.Workspace, g.agent.Host.Checkpoints = g.ws, s
	want(t, g.start(agent.Input{Text: "yes"}), "completed", "")
	g.holds("a", "1\n")
	g.saves("c1 before big", "c2 turn big", "c3 command a*")
}

// What rules hide is told once in a run, before its first command: also before a question
// about that, and of no other call.
func TestWhatRulesHideIsToldOnce(t *testing.T) {
	const told = "act may change what .gitignore hides, which no checkpoint keeps: "
	for _, asked := range []bool{false, true} {
		g, s := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), use("c1", "act", "b=1\n"), use("c2", "act", "b=2\n")}})
		s.hidden = ".env, out/"
		var at []string // what was told when
		g.hook = func(entry string) {
			if strings.HasPrefix(entry, "run ") {
				at = append(at, fmt.Sprint(len(g.notices)))
			}
			s.hidden = ".env" // other names are no other thing
		}
		if asked {
			g.agent.Task.Policy = approval.Policy{Mode: approval.ModeAsk}
			g.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
				if n := len(g.notices); n != map[bool]int{true: 0, false: 1}[q.Call == "w1"] {
					t.Errorf("%d notices when it was asked about %s: %q", n, q.Call, g.notices)
				}
				return agent.Answer{Approve: yes()}, nil
			})
		}
		want(t, g.run("go"), "completed", "")
		if len(g.notices) != 1 || g.notices[0] != told+".env, out/" && g.notices[0] != told+".env" {
			t.Errorf("asked %t: told %q", asked, g.notices)
		}
		if got := strings.Join(at, " "); got != "1 1" {
			t.Errorf("asked %t: notices before each call: %s", asked, got)
		}
	}
}

// A run that ends before the results are told, and one that was killed, still records
// what stands there; the numbers go on.
func TestCheckpointsAcrossRestarts(t *testing.T) {
	g, s := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), use("c1", "act", "b=1\n")}}, turn{calls: []call{write("w2", "b", "2\n")}})
	g.put("a", "0\n")
	ctx, cancel := context.WithCancelCause(context.Background())
	g.hook = func(entry string) {
		if entry == "run act b=1\n" {
			g.put("a", "by the command\n")
			cancel(errors.New("enough"))
		}
	}
	g.agent.Host.Workspace = g.ws
	want(t, g.startWith(ctx, agent.Input{Text: "go"}), "cancelled", "")
	g.saves("c1 before a", "c2 turn a", "c3 command a b*")
	g.hook = nil
	g.agent.Host.Workspace, g.agent.Host.Checkpoints = g.ws, s
	want(t, g.start(agent.Input{Yes: true}), "completed", "")
	g.saves("c1 before a", "c2 turn a", "c3 command a b*", "c4 turn b")
}

// After a restore the model is told which files of those that it knows are others now,
// and that it was a restore.
func TestARestoreIsTold(t *testing.T) {
	for _, name := range []string{"a", "linked/a"} {
		g, s := newKeptBench(t, turn{calls: []call{write("w1", name, "1\n")}}, turn{calls: []call{{"q", "ask_followup_question", `{"question":"Well?","follow_up":[]}`}}})
		if err := os.Symlink(".", filepath.Join(g.dir, "linked")); err != nil {
			t.Skip("links cannot be made here")
		}
		g.put("a", "0\n")
		g.agent.User.Asker = g.person(agent.Answer{}, agent.ErrUnattended)
		g.run("go")
		now, was := s.at("a"), g.disk.state.Checkpoints[0].Files[0].Now
		g.put("a", "0\n")
		g.must(g.disk.Commit(context.Background(), task.RestoreBegun{Restore: "r", To: 1, Safety: 2, Files: []task.RestoreFile{{Path: "a", From: now, To: was}}}))
		g.must(g.disk.Commit(context.Background(), task.RestoreEnded{Restore: "r", Outcome: task.RestoreDone, Files: 1}))
		g.agent.Host.Workspace, g.agent.Host.Checkpoints = g.ws, s
		want(t, g.start(agent.Input{Text: "fine"}), "completed", "")
		if got := strings.Join(g.changes(), ", "); !strings.Contains(got, name+" user_edited restore") {
			t.Error(got)
		}
		if told := strings.Join(g.notices, "\n"); !strings.Contains(told, "restored a checkpoint") {
			t.Error(told)
		}
	}
}

// What changed while a long command ran is recorded, and not as the command's: it may be a
// person's. The person is told, and the model of what it knew.
func TestWhatALongCommandLeavesInDoubt(t *testing.T) {
	g, s := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), use("c1", "act", "b=1\n")}})
	s.long = true
	g.put("a", "0\n")
	g.put("c", "0\n")
	g.hook = func(entry string) {
		if entry == "run act b=1\n" {
			g.put("c", "mine\n")
			g.put("d\nDone.", "mine\n")
		}
	}
	want(t, g.run("go"), "completed", "")
	g.saves("c1 before a", "c2 turn a", "c3 doubt b* c* d\nDone.*")
	if c := g.disk.state.Checkpoints[2]; c.Call != "c1" {
		t.Errorf("it is bound to %q", c.Call)
	}
	if told := strings.Join(g.notices, "\n"); !strings.Contains(told, `3 files changed while act ran, by it or by something else; a restore asks about them: b, c, "d\nDone."`) {
		t.Error(told)
	}
}
