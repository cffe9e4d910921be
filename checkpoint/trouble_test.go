package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

// What a survey keeps counts at once: a store that is nearly full takes the first file and
// not one more.
func TestASurveyStopsWhereTheStoreIsFull(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("first", "x")
	l.hold("first") // the store is made
	size, err := l.k.Size(t.Context())
	l.must(err)
	for _, c := range []struct {
		room   int64
		unheld int
	}{{600, 1}, {1199, 1}, {1200, 0}, {599, 2}} {
		l := newBench(t, Options{Git: "none"})
		l.write("first", "x")
		l.hold("first")
		l.write("a", strings.Repeat("a", 600))
		l.write("b", strings.Repeat("b", 600))
		l.k = l.open(Options{Git: "none", MaxStore: size + c.room})
		if u := l.survey().unheld; u.Files != c.unheld || u.Full != (c.unheld > 0) || u.Trouble != nil {
			t.Errorf("room for %d bytes: %+v", c.room, u)
		}
	}
}

// Contents that were written and could not be made durable are not said to be kept.
func TestASurveyThatCannotBeKeptSaysSo(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("held", "x")
	l.hold("held") // from here on the next pack is refused only when it is done
	l.write("new", "y")
	mend := l.unholdable()
	s := l.survey()
	if u := s.unheld; u.Trouble == nil || u.Files != 1 || u.Names[0] != "new" {
		t.Errorf("unheld: %+v", u)
	}
	mend()
	l.write("new", "z")
	got := l.changes(s)
	if f := got["new"]; len(got) != 1 || f.Was.Hash == "" || f.Was.Blob != "" || f.Now.Blob == "" {
		t.Errorf("changes: %+v", got)
	}
}

// Files that go, or become something else, between the walk and the reading are taken for
// what they are by then.
func TestFilesThatGoBeforeTheyAreRead(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for _, p := range []string{"a", "b", "c", "d", "e"} {
		l.write(p, p)
	}
	l.must(os.Symlink("a", l.at("link")))
	g, err := l.k.w.OpenTree()
	l.must(err)
	defer g.Close()
	sc, err := l.k.walk(t.Context(), g, nil)
	l.must(err)
	l.remove("a")
	l.remove("d")
	l.remove("e")
	l.remove("link")
	l.write("link", "a file now, and longer")
	if _, err := l.k.readAll(t.Context(), g, sc); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range sc.list {
		got = append(got, e.path)
		if e.path == "link" && (e.kind() != api.KindFile || e.named || e.stat.size != int64(len("a file now, and longer"))) {
			t.Errorf("what was a link: %+v", e)
		}
	}
	if strings.Join(got, " ") != "b c link" {
		t.Errorf(`got %v, want strings.Join(got, " ") = "b c link"`, got)
	}
}

// What was nowhere and an index comes to name is the user's only when his repository has
// it, also where nothing makes it be read again.
func TestAnIndexThatPromisesWhatWasNowhere(t *testing.T) {
	for _, lost := range []bool{false, true} {
		l := newBench(t, Options{MaxFile: 4})
		l.write("a", "longer than what is kept")
		l.k.Know("a")
		if u := l.survey().unheld; u.Files != 1 {
			t.Fatalf("got %+v, want u.Files = 1", u)
		}
		l.commitAll(l.root)
		id := strings.TrimSpace(gitIn(t, l.root, "rev-parse", ":a"))
		if lost {
			l.must(os.Remove(l.at(".git/objects/" + id[:2] + "/" + id[2:])))
		}
		for i := range l.k.last.list {
			l.k.last.list[i].read += int64(time.Hour) // long after the file's times
		}
		if u := l.survey().unheld; (u.Files == 1) != lost {
			t.Errorf("lost %v: %+v", lost, u)
		}
	}
}

// A survey of before a command promises no content that the store has lost since.
func TestAnInterruptedSurveyPromisesWhatIsThere(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	l.surveyFor("call")
	packs, err := filepath.Glob(filepath.Join(l.k.dir, "bundles", "*"))
	l.must(err)
	for _, name := range packs {
		l.must(os.Remove(name))
	}
	l.k = l.open(l.k.o)
	s := l.interrupted("call")
	l.write("a", "2")
	got := l.changes(s)
	if f := got["a"]; len(got) != 1 || f.Was.Hash == "" || f.Was.Blob != "" || f.Now.Blob == "" {
		t.Errorf(`got %+v, want len(got) = 1 and f.Was.Hash != "" and f.Was.Blob = "" and f.Now.Blob != ""`, got)
	}
}

// What is held for one checkpoint takes no more room together than there is.
func TestHoldingStopsWhereTheStoreIsFull(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("first", "x")
	l.hold("first")
	size, err := l.k.Size(t.Context())
	l.must(err)
	l.write("a", strings.Repeat("a", 600))
	l.write("b", strings.Repeat("b", 600))
	l.k = l.open(Options{Git: "none", MaxStore: size + 1199})
	if got := l.hold("a", "b"); got["a"].Blob == "" || got["b"].Blob != "" || got["b"].Hash == "" {
		t.Errorf(`got %+v, want got["a"].Blob != "" and got["b"].Blob = "" and got["b"].Hash != ""`, got)
	}
}

// A step's change of the mode is taken out of the mode there is now, unless others gave it
// a third one.
func TestAStepsModeIsTakenOut(t *testing.T) {
	for _, c := range []struct {
		now, from, to, want uint32
		ok                  bool
	}{
		{0o644, 0o644, 0o644, 0o644, true}, // it changed none
		{0o600, 0o644, 0o644, 0o600, true}, // it changed none, others did
		{0o755, 0o644, 0o755, 0o644, true}, // taken out
		{0o644, 0o644, 0o755, 0o644, true}, // others took it out already
		{0o600, 0o644, 0o755, 0o600, false},
	} {
		got, ok := mergeMode(c.now, Step{From: api.FileVersion{Mode: c.from}, To: api.FileVersion{Mode: c.to}})
		if got != c.want || ok != c.ok {
			t.Errorf("%o, of a step from %o to %o: %o %v", c.now, c.from, c.to, got, ok)
		}
	}
}
