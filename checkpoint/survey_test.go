package checkpoint

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

func TestChangesOfACommand(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("same.txt", "same")
	l.write("edited.txt", "old")
	l.write("gone/deep/file", "was here")
	l.write("mode.sh", "#!/bin/sh\n")
	l.must(os.Symlink("same.txt", l.at("link")))
	got := l.during(func() {
		l.write("edited.txt", "new")
		l.write("made/new.txt", "fresh")
		l.remove("gone")
		l.must(os.Chmod(l.at("mode.sh"), 0o755))
		l.remove("link")
		l.must(os.Symlink("edited.txt", l.at("link")))
		l.must(os.Chtimes(l.at("same.txt"), time.Time{}, time.Unix(1, 0))) // a touch is no change
	})
	if len(got) != 5 {
		t.Errorf("%d changes: %v", len(got), got)
	}
	l.wantChange(got, "edited.txt", "old", "new")
	l.wantChange(got, "made/new.txt", "", "fresh")
	l.wantChange(got, "gone/deep/file", "was here", "")
	l.wantChange(got, "mode.sh", "#!/bin/sh\n", "#!/bin/sh\n")
	l.wantChange(got, "link", "same.txt", "edited.txt")
	if m := got["mode.sh"]; m.Was.Mode != 0o644 || m.Now.Mode != 0o755 {
		t.Errorf("mode %o -> %o", m.Was.Mode, m.Now.Mode)
	}
	if k := got["link"].Now.Kind; k != api.KindLink {
		t.Errorf("the link is a %s", k)
	}
	if again := l.during(func() {}); len(again) != 0 {
		t.Errorf("nothing was done, and changed: %v", again)
	}
}

// Rules that come or go with a command must not make files come or go: a restore would
// remove what was always there.
func TestIgnoreRulesThatChange(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write(".gitignore", "*.log\nbuild/\n")
	l.write("a.log", "1")
	l.write("build/out", "1")
	l.write("src/x", "1")
	l.write("src/y", "1")
	got := l.during(func() {
		l.write(".gitignore", "src/\n")
		l.write("src/x", "2")
		l.write("b.log", "2")
		l.write("new/z", "2")
	})
	l.wantChange(got, ".gitignore", "*.log\nbuild/\n", "src/\n")
	l.wantChange(got, "src/x", "1", "2")
	l.wantChange(got, "new/z", "", "2")
	if len(got) != 3 {
		t.Errorf("changes: %v", got)
	}
}

func TestIgnoredFilesThatAreKnown(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write(".gitignore", "build/\n.env\n")
	l.write("build/known", "1")
	l.write("build/other", "1")
	l.write(".env", "A=1")
	_, err := l.k.Hold(t.Context(), []string{"build/known", l.at("build/new"), ".env"})
	l.must(err)
	got := l.during(func() {
		l.write("build/known", "2")
		l.write("build/other", "2")
		l.write("build/new", "2")
		l.remove(".env")
	})
	l.wantChange(got, "build/known", "1", "2")
	l.wantChange(got, "build/new", "", "2")
	l.wantChange(got, ".env", "A=1", "")
	if len(got) != 3 {
		t.Errorf("changes: %v", got)
	}
}

// What becomes known while a command runs was not looked at before it: it may have been
// there all the time.
func TestKnownMeanwhile(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write(".gitignore", "build/\n")
	l.write("build/x", "1")
	if got := l.during(func() { l.k.Know("build/x") }); len(got) != 0 {
		t.Errorf("changes: %v", got)
	}
}

func TestUnheldIsSaid(t *testing.T) {
	l := newBench(t, Options{Git: "none", MaxFile: 100, MaxSurvey: 250})
	l.write("a", strings.Repeat("a", 90))
	l.write("b", strings.Repeat("b", 90))
	l.write("c", strings.Repeat("c", 90))
	l.write("large\n", strings.Repeat("x", 1000))
	s := l.survey()
	u := s.unheld
	if u.Files != 2 || u.Bytes != 1090 {
		t.Errorf("unheld: %+v", u)
	}
	if want := "2 files (1.1 KB) that could not be brought back: large?, "; !strings.HasPrefix(u.String(), want) {
		t.Errorf("it says %q, want %q...", u, want)
	}
	l.write("large\n", "small now")
	for _, p := range []string{"a", "b", "c"} {
		l.write(p, "other")
	}
	got := l.changes(s)
	l.wantChange(got, "large\n", "(not kept)", "small now")
	// Which two of the three the budget went to is not promised: several read at once.
	kept := 0
	for _, p := range []string{"a", "b", "c"} {
		if was := *got[p].Was; was.Blob != "" && l.content(was) == strings.Repeat(p, 90) {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d of three are there, want 2: %+v", kept, got)
	}
	// The budget is one survey's: the next one goes on where this one stopped.
	if u := l.survey().unheld; u.String() != "" {
		t.Errorf("then: %v", u)
	}
}

// What rules hide is named before a command, as nothing keeps it: each thing once, a folder
// and not what lies in it, those nearest to the top first, and nothing that is kept.
func TestWhatRulesHideIsNamed(t *testing.T) {
	l := newBench(t, Options{})
	for p, text := range map[string]string{
		".gitignore": "*.log\n.env\nout/\nvendor\n", "src/.gitignore": "*.o\n", "a": "a",
		".env": "key", "x.log": "1", "out/1": "1", "out/deep/2": "2", "src/a.o": "o", "src/b.o": "o", "src/deep/c.o": "o", "known.log": "k", "tracked.log": "t",
	} {
		l.write(p, text)
	}
	l.must(os.Symlink("a", l.at("vendor")))
	gitIn(t, l.root, "init", "-q")
	gitIn(t, l.root, "add", "-f", "tracked.log")
	l.commitAll(l.root)
	l.k.Know("known.log")
	u := l.survey()
	if got, want := u.Hidden(), ".env, out/, vendor, x.log, src/a.o, ..."; got != want {
		t.Errorf("hidden: %q, want %q", got, want)
	}
	if u.Unheld() != "" {
		t.Errorf("and besides: %v", u)
	}
	l.write(".gitignore", "")
	l.write("src/.gitignore", "")
	if got := l.survey().Hidden(); got != "" {
		t.Errorf("without rules: %q", got)
	}
	// A name is no more than a name in the line that tells it.
	l.write(".gitignore", "/b*\n")
	l.write("b\nad", "1")
	if got := l.survey().Hidden(); got != "b?ad" {
		t.Errorf("hidden: %q", got)
	}
}

func TestCapsOfFilesAndWalks(t *testing.T) {
	l := newBench(t, Options{Git: "none", MaxFiles: 2})
	for _, p := range []string{"a", "b", "c", "d"} {
		l.write(p, p)
	}
	if u := l.survey().unheld; u.Files != 2 || u.Full {
		t.Errorf("of 4 files 2 may be kept; unheld: %+v", u)
	}
	l.k = l.open(Options{Git: "none", MaxWalk: 2})
	s := l.survey()
	if u := s.unheld; !u.Cut || u.String() == "" {
		t.Errorf("unheld: %+v", u)
	}
	// The walk ended at c: what is behind it was not seen before, and did not come now.
	l.remove("a")
	l.remove("b")
	got := l.changes(s)
	if len(got) != 2 {
		t.Errorf("changes: %v", got)
	}
	l.k = l.open(Options{Git: "none", MaxStore: -1})
	l.write("e", "not kept yet")
	s = l.survey()
	if u := s.unheld; u.Files != 1 || u.Names[0] != "e" || !u.Full || !strings.HasSuffix(u.String(), "could not be brought back: e (the store of checkpoints is full: roost checkpoint gc may make room, or a larger checkpoint_store)") {
		t.Errorf("with a full store: %v", u)
	}
	v, err := l.k.Hold(t.Context(), []string{"e"})
	l.must(err)
	if v["e"].Blob != "" || v["e"].Hash == "" {
		t.Errorf("held in a full store: %+v", v)
	}
}

// The names of a folder count before they are read, also those that rules hide; what precedes the folder is seen.
func TestAFolderOfTooManyNames(t *testing.T) {
	for _, dir := range []string{"", "b/"} {
		l := newBench(t, Options{Git: "none", MaxWalk: 2})
		l.write("a", "1")
		l.write(".gitignore", "*.log\n")
		for i := range 9 {
			l.write(fmt.Sprintf("%s%d.log", dir, i), "x")
		}
		s := l.survey()
		if u := s.unheld; !u.Cut {
			t.Errorf("9 names in %q: unheld %+v, want it cut", dir, u)
		}
		l.write("a", "22")
		if got := l.changes(s); len(got) != min(1, len(dir)) {
			t.Errorf("9 names in %q: changes %v, want the file before the folder", dir, got)
		}
	}
}

// A file that is over the bound of what is read is judged by its stat.
func TestFilesThatAreNotRead(t *testing.T) {
	l := newBench(t, Options{Git: "none", MaxFile: 10, MaxRead: 50})
	l.write("huge", strings.Repeat("x", 100))
	l.write("huge2", strings.Repeat("x", 100))
	got := l.during(func() { l.write("huge", strings.Repeat("y", 101)) })
	f, ok := got["huge"]
	if !ok || len(got) != 1 || f.Was.Hash != "" || f.Was.Size != 100 || f.Now.Size != 101 {
		t.Errorf("changes: %+v", got)
	}
}

func TestFoldersAndFilesThatTakeEachOthersPlace(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "file")
	l.write("b/x", "in folder")
	got := l.during(func() {
		l.remove("a")
		l.write("a/y", "in a")
		l.remove("b")
		l.write("b", "now a file")
	})
	l.wantChange(got, "a", "file", "")
	l.wantChange(got, "a/y", "", "in a")
	l.wantChange(got, "b", "", "now a file")
	l.wantChange(got, "b/x", "in folder", "")
	if len(got) != 4 {
		t.Errorf("changes: %v", got)
	}
}

// A quick change behind a reading, in the same tick of the clock and of the same size,
// must not be missed.
func TestRacyChanges(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("f", "0000")
	info, err := os.Stat(l.at("f"))
	l.must(err)
	for i := range 20 {
		before := "000" + string(rune('0'+i%10))
		now := "000" + string(rune('0'+(i+1)%10))
		got := l.during(func() {
			f, err := os.OpenFile(l.at("f"), os.O_WRONLY, 0)
			l.must(err)
			_, err = f.WriteString(now)
			l.must(err)
			l.must(f.Close())
			l.must(os.Chtimes(l.at("f"), time.Time{}, info.ModTime()))
		})
		l.wantChange(got, "f", before, now)
	}
}
