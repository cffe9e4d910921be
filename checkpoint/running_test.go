package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

// surveyFor is a survey of a call's, whose process is then as good as killed.
func (l *bench) surveyFor(call string) {
	l.Helper()
	s, err := l.k.SurveyFor(l.Context(), "t", call)
	l.must(err)
	s.Close() // which says nothing of the outcome
	l.must(l.k.Close())
	l.k = l.open(l.k.o)
}

func (l *bench) interrupted(call string) *Survey {
	l.Helper()
	s, err := l.k.Interrupted(l.Context(), "t", call)
	l.must(err)
	if s != nil {
		l.Cleanup(s.Close)
	}
	return s
}

// What a command changed that was killed together with who watched it is found by another
// process, with contents, whatever other tasks looked at in between.
func TestWhatAnInterruptedCommandChanged(t *testing.T) {
	for _, git := range []string{"none", ""} {
		l := newBench(t, Options{Git: git})
		if git == "" {
			gitIn(t, l.root, "init", "-q")
		}
		l.write(".gitignore", "build/\n")
		l.write("edited", "old")
		l.write("deep/removed", "old too")
		l.write("same", "same")
		l.write("build/hidden", "none of ours")
		if git == "" {
			gitIn(t, l.root, "add", ".")
			gitIn(t, l.root, "commit", "-qm", "all")
		}
		l.surveyFor("call")
		l.write("edited", "new")
		l.remove("deep")
		l.write("made/here", "new")
		l.write(".gitignore", "nothing\n") // what it hid before does not come into being by that
		l.write("same", "same")
		l.survey().Close() // of another task
		l.k = l.open(l.k.o)
		if _, err := l.k.Collect(t.Context(), false, true); err != nil {
			t.Fatal(err)
		}
		s := l.interrupted("call")
		if s == nil {
			t.Fatal("there is no survey")
		}
		got := l.changes(s)
		l.wantChange(got, "edited", "old", "new")
		l.wantChange(got, "deep/removed", "old too", "")
		l.wantChange(got, "made/here", "", "new")
		l.wantChange(got, ".gitignore", "build/\n", "nothing\n")
		if len(got) != 4 || got["made/here"].Was.Dirs != 1 || got["deep/removed"].Now.Dirs != 1 {
			t.Errorf("changes %+v", got)
		}
		if again := l.interrupted("call"); again == nil {
			t.Error("it is gone before the outcome is recorded")
		}
		s.Done()
		if l.interrupted("call") != nil || len(befores(filepath.Join(l.data, l.k.Name()), beforeName)) != 0 {
			t.Error("it is still there")
		}
	}
}

// A survey is its call's; the next call of the task takes its place, another task does not.
func TestASurveyIsItsCalls(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	l.surveyFor("one")
	other, err := l.k.SurveyFor(t.Context(), "other", "one")
	l.must(err)
	l.write("a", "2")
	if l.interrupted("two") != nil {
		t.Error("a call that never was has a survey")
	}
	if l.interrupted("one") == nil {
		t.Error("another task's call took it away")
	}
	other.Done()
	l.surveyFor("two")
	if l.interrupted("one") != nil || l.interrupted("two") == nil {
		t.Error("the next call did not take its place")
	}
	l.must(l.k.Forget(t.Context(), OwnerOf("t")))
	if l.interrupted("two") != nil {
		t.Error("it outlives its task")
	}
}

// Damage is as if there were none; no byte may be another one.
func TestADamagedSurveyOfACall(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write(".gitignore", "x")
	l.write("a/b", "1")
	l.surveyFor("call")
	name := beforeFile(l.k.dir, "t", "call")
	whole, err := os.ReadFile(name)
	l.must(err)
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x10
		if _, ok := decodeBefore(broken, "call"); ok {
			t.Fatalf("a wrong byte at %d is not noticed", i)
		}
	}
	for what, damage := range map[string]func() error{
		"empty":    func() error { return os.WriteFile(name, nil, 0o600) },
		"cut":      func() error { return os.WriteFile(name, whole[:len(whole)/2], 0o600) },
		"a folder": func() error { return os.Mkdir(name, 0o700) },
	} {
		l.must(os.RemoveAll(name))
		l.must(damage())
		if l.interrupted("call") != nil {
			t.Errorf("%s: it is believed", what)
		}
	}
}

// What changed after the command was last seen running is told apart, of what is gone by
// its folder; where the command is known to have run on, nothing is.
func TestChangesSinceACommandWasInterrupted(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("d/removed", "old")
	l.write("d/stays", "old")
	l.write("edited", "old")
	l.surveyFor("call")
	l.write("edited", "new")
	l.remove("d/removed")
	l.write("new/made", "new")
	// Who writes a file may give it any time, but for that of its last change.
	if info, err := os.Lstat(l.at("edited")); err == nil && statOf(info).ctime != 0 {
		old := time.Now().Add(-2 * time.Hour)
		l.must(os.Chtimes(l.at("edited"), old, old))
	}
	name := beforeFile(l.k.dir, "t", "call")
	for _, tt := range []struct {
		seen time.Time
		ran  bool
		want []string
	}{
		{time.Now(), false, nil},
		{time.Now().Add(-Brief / 2), false, nil}, // a busy machine beats late
		{time.Now().Add(-time.Hour), false, []string{"d/removed", "edited", "new/made"}},
		{time.Now().Add(-time.Hour), true, nil},
	} {
		l.must(os.Chtimes(name, tt.seen, tt.seen))
		s := l.interrupted("call")
		list, err := s.Changes(t.Context())
		l.must(err)
		during, doubt, since := s.Whose(list, tt.ran)
		var got []string
		for _, f := range since {
			got = append(got, f.Path)
		}
		if d := cmp.Diff(tt.want, got); d != "" || len(during)+len(since) != 3 || doubt != nil {
			t.Errorf("seen %s, ran %t: %s, in doubt %v", time.Since(tt.seen), tt.ran, d, doubt)
		}
	}
	// A survey whose command is watched tells nothing apart.
	s := l.survey()
	l.write("edited", "newer")
	list, err := s.Changes(t.Context())
	l.must(err)
	if during, doubt, since := s.Whose(list, false); len(during) != 1 || doubt != nil || since != nil {
		t.Errorf("got %v, %v, %v, want len(during) = 1 and doubt = nil and since = nil", during, doubt, since)
	}
}

// What changed while a command ran for long may be somebody else's: while it is watched,
// where it was killed, and where it ran on.
func TestALongCommandLeavesDoubt(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("edited", "old")
	for what, whose := range map[string]func(s *Survey, list func(*Survey) []task.CheckpointFile) (own, doubt, since []task.CheckpointFile){
		"watched": func(s *Survey, list func(*Survey) []task.CheckpointFile) (own, doubt, since []task.CheckpointFile) {
			s.base.made = s.base.made.Add(-2 * Brief)
			return s.Whose(list(s), false)
		},
		"killed": func(s *Survey, list func(*Survey) []task.CheckpointFile) (own, doubt, since []task.CheckpointFile) {
			s.Close()
			seen := time.Now().Add(2 * Brief)
			l.must(os.Chtimes(s.file, seen, seen))
			killed := l.interrupted("call")
			return killed.Whose(list(killed), false)
		},
		"ran on": func(s *Survey, list func(*Survey) []task.CheckpointFile) (own, doubt, since []task.CheckpointFile) {
			s.base.made = s.base.made.Add(-2 * Brief)
			l.must(l.k.writeBefore(s.file, "call", s.base))
			s.Close()
			on := l.interrupted("call")
			return on.Whose(list(on), true)
		},
	} {
		s, err := l.k.SurveyFor(t.Context(), "t", "call")
		l.must(err)
		l.write("edited", what)
		own, doubt, since := whose(s, func(s *Survey) []task.CheckpointFile {
			list, err := s.Changes(t.Context())
			l.must(err)
			return list
		})
		if len(own) != 0 || len(doubt) != 1 || doubt[0].Path != "edited" || len(since) != 0 {
			t.Errorf("%s: own %v, in doubt %v, since %v", what, own, doubt, since)
		}
		s.Done()
	}
}

// While a command runs its survey's time goes on.
func TestASurveyBeats(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	s, err := l.k.SurveyFor(t.Context(), "t", "call")
	l.must(err)
	defer s.Close()
	past := time.Now().Add(-time.Hour)
	l.must(os.Chtimes(s.file, past, past))
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		info, err := os.Stat(s.file)
		l.must(err)
		if time.Since(info.ModTime()) < time.Minute {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it stands still")
		}
	}
}

// Surveys of tasks that are no more go, those of others and young ones stay.
func TestSurveysOfDeadTasksAreSwept(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	var files []string
	for _, id := range []string{"alive", "dead", "young"} {
		s, err := l.k.SurveyFor(t.Context(), id, "call")
		l.must(err)
		s.Close()
		files = append(files, s.file)
		if id != "young" {
			l.must(os.Chtimes(s.file, farPast, farPast))
		}
	}
	SweepCalls(l.k.dir, map[string]bool{OwnerOf("alive"): true}, time.Hour)
	left := befores(l.k.dir, beforeName)
	if len(left) != 2 || slices.Contains(left, files[1]) {
		t.Errorf("left: %v of %v", left, files)
	}
}

func FuzzDecodeBefore(f *testing.F) {
	e := entry{path: "a/b", stat: stat{mode: 0o644, size: 3}, named: true, held: ours, read: 9, size: 3}
	f.Add(encodeBefore("call", &scan{list: []entry{e}, dirs: []string{"a/"}, known: []string{"x"}, closed: []string{"c/"}, end: "z",
		rules: map[string]*compiled{".gitignore": {text: "*.o"}}}))
	f.Add(encodeBefore("", &scan{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		sc, ok := decodeBefore(data, "")
		if !ok {
			return
		}
		again, ok := decodeBefore(encodeBefore("other", sc), "other")
		if !ok || len(again.list) != len(sc.list) || again.end != sc.end || !slices.Equal(again.known, sc.known) || len(again.rules) != len(sc.rules) {
			t.Errorf("%+v became %+v", sc, again)
		}
		_ = sc.gone("p/q")
		_ = sc.blind("p")
	})
}
