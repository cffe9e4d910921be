package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

func (l *bench) hold(paths ...string) map[string]api.FileVersion {
	l.Helper()
	v, err := l.k.Hold(l.Context(), paths)
	l.must(err)
	return v
}

func (l *bench) look(paths ...string) map[string]api.FileVersion {
	l.Helper()
	v, err := l.k.Look(l.Context(), paths)
	l.must(err)
	return v
}

func TestHoldKeepsWhatStandsThere(t *testing.T) {
	l := newBench(t, Options{})
	l.write("dir/a.txt", "one\r\ntwo")
	l.write("empty", "")
	l.must(os.Chmod(l.at("dir/a.txt"), 0o640))
	got := l.hold("dir/a.txt", l.at("empty"), "no/such/file", "dir")
	want := map[string]api.FileVersion{
		"dir/a.txt":    {Kind: api.KindFile, Mode: 0o640, Size: 8, Hash: workspace.HashOf([]byte("one\r\ntwo")), Blob: workspace.HashOf([]byte("one\r\ntwo"))},
		"empty":        {Kind: api.KindFile, Mode: 0o644, Hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Blob: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"no/such/file": {Kind: api.KindGone, Dirs: 2},
		"dir":          {Kind: api.KindGone}, // a folder is no file
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	l.write("dir/a.txt", "changed")
	l.remove("empty")
	// Another process finds it.
	k := l.open(Options{})
	if data, err := k.Content(t.Context(), got["dir/a.txt"], 0); err != nil || string(data) != "one\r\ntwo" {
		t.Errorf("content %q, %v", data, err)
	}
	if data, err := k.Content(t.Context(), got["empty"], 0); err != nil || len(data) != 0 {
		t.Errorf("content %q, %v", data, err)
	}
	if _, err := k.Content(t.Context(), got["dir/a.txt"], 3); !errors.Is(err, content.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	wrong := got["dir/a.txt"]
	wrong.Hash = got["empty"].Hash
	if _, err := k.Content(t.Context(), wrong, 0); !errors.Is(err, content.ErrDamaged) {
		t.Errorf("a content that is not what was recorded: %v", err)
	}
}

func TestHoldOfLinks(t *testing.T) {
	l := newBench(t, Options{})
	l.write("real/f", "text")
	l.write("../outside", "not ours")
	l.must(os.Symlink("real", l.at("way")))
	l.must(os.Symlink("real/f", l.at("link")))
	l.must(os.Symlink("../outside", l.at("out")))
	l.must(os.Symlink("real/not yet", l.at("dangling")))
	for _, c := range []struct {
		give string
		want map[string]string // path to kind
	}{
		{"way/f", map[string]string{"real/f": "file"}},
		{"way/new/x", map[string]string{"real/new/x": "gone"}},
		{"link", map[string]string{"real/f": "file", "link": "link"}},
		{"out", map[string]string{"out": "link"}},
		{"dangling", map[string]string{"real/not yet": "gone", "dangling": "link"}},
		{"../outside", map[string]string{}},
		{"real/../real/./f", map[string]string{"real/f": "file"}},
		{".git/index", map[string]string{}},
		{".", map[string]string{}},
	} {
		got := map[string]string{}
		for p, v := range l.hold(c.give) {
			got[p] = v.Kind
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.give, d)
		}
	}
	if v := l.hold("link")["link"]; l.content(v) != "real/f" || v.Mode != 0 {
		t.Errorf("the link: %+v", v)
	}
}

// HoldAt keeps a link itself, wherever it leads, and follows none.
func TestHoldAtFollowsNothing(t *testing.T) {
	l := newBench(t, Options{})
	l.write("real/f", "text")
	for name, target := range map[string]string{"loop": "loop", "long": strings.Repeat("n", 300), "link": "real/f", "way": "real"} {
		l.must(os.Symlink(target, l.at(name)))
	}
	l.must(os.Mkdir(l.at(".rooignore"), 0o755)) // rules that nobody can read hide nothing from a checkpoint
	got := map[string]string{}
	held, err := l.k.HoldAt(t.Context(), []string{"loop", "long", "link", "way/f", "loop/f", ".git/index", "real/f"})
	l.must(err)
	for p, v := range held {
		got[p] = v.Kind
	}
	want := map[string]string{"loop": api.KindLink, "long": api.KindLink, "link": api.KindLink, "real/f": api.KindFile}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Look follows nothing: a path that is behind a link now is none that was recorded.
func TestLookFollowsNothing(t *testing.T) {
	l := newBench(t, Options{})
	l.write("real/f", "text")
	l.must(os.Symlink("real", l.at("way")))
	l.must(os.Symlink(l.root, l.at("loop")))
	got := map[string]string{}
	for p, v := range l.look("real/f", "way/f", "way", "loop/real/f", "real/f/below", "real", "../x", "/etc/passwd", ".git/config", "a/../b", "") {
		got[p] = v.Kind
	}
	want := map[string]string{
		"real/f": "file", "way/f": "other", "way": "link", "loop/real/f": "other", "real/f/below": "gone", "real": "gone",
		"../x": "other", "/etc/passwd": "other", ".git/config": "other", "a/../b": "other", "": "other",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	v := l.look("real/f")["real/f"]
	if v.Blob != "" || v.Hash == "" {
		t.Errorf("nothing is kept by looking: %+v", v)
	}
	l.hold("real/f")
	if v := l.look("real/f")["real/f"]; v.Blob == "" {
		t.Error("what is kept already is not said to be")
	}
}

func TestHoldOfLargeFiles(t *testing.T) {
	l := newBench(t, Options{MaxHold: 20 << 20})
	large := strings.Repeat("0123456789abcdef", 10<<20/16)
	l.write("large", large)
	l.write("too large", strings.Repeat(large, 3))
	got := l.hold("large", "too large")
	if v := got["large"]; l.content(v) != large || v.Size != int64(len(large)) {
		t.Errorf("large: %+v", v)
	}
	if v := got["too large"]; v.Blob != "" || v.Hash == "" || v.Size != 30<<20 {
		t.Errorf("too large: %+v", v)
	}
}

// A log grows all the time: what is kept is something that it held.
func TestFilesThatChangeWhileTheyAreRead(t *testing.T) {
	l := newBench(t, Options{})
	l.write("log", "first line\n")
	g, err := l.k.w.OpenTree()
	l.must(err)
	defer g.Close()
	for _, small := range []int64{1 << 20, 0} {
		r := newReader(small)
		n := 0
		r.interrupted = func() {
			n++
			f, err := os.OpenFile(l.at("log"), os.O_WRONLY|os.O_APPEND, 0)
			l.must(err)
			_, err = f.WriteString("more\n")
			l.must(err)
			l.must(f.Close())
		}
		before, err := os.ReadFile(l.at("log"))
		l.must(err)
		c, err := r.read(t.Context(), g, "log")
		l.must(err)
		want := string(before) + strings.Repeat("more\n", tries-1)
		if c.stable || n != tries || !c.named || string(c.hash()) != workspace.HashOf([]byte(want)) || hex.EncodeToString(c.blob[:]) != blobID([]byte(want)) {
			t.Errorf("stable %v after %d readings, %d bytes; want the first %d", c.stable, n, c.size, len(want))
		}
		once := func() { l.must(os.Truncate(l.at("log"), 3)) }
		r.interrupted = func() { once(); once = func() {} }
		if c, err = r.read(t.Context(), g, "log"); err != nil || !c.stable || c.size != 3 {
			t.Errorf("truncated while it was read: %+v, %v", c, err)
		}
		r.interrupted = func() { l.remove("log"); l.write("log", "another file") }
		if c, err = r.read(t.Context(), g, "log"); err != nil || !c.named {
			t.Errorf("replaced while it was read: %+v, %v", c, err)
		}
		r.interrupted = nil
		l.remove("log")
		if _, err := r.read(t.Context(), g, "log"); !errors.Is(err, errVanished) {
			t.Errorf("a file that is gone: %v", err)
		}
		l.write("log", "first line\n")
	}
}

func TestNamesOfAllKinds(t *testing.T) {
	l := newBench(t, Options{})
	names := []string{"line\nbreak", "tab\t", "not utf-8 \xff\xfe", "dir \x80/in \xc3", "\U0010FFFE", "back\\slash", "-rf", "a b", "ümlaut", ".gitignored", ".gitx", "git~1", "con"}
	want := map[string]string{}
	for _, n := range names {
		l.write(n, "content of "+n)
		want[Recorded(n)] = "content of " + n
	}
	check := func(got map[string]api.FileVersion) {
		t.Helper()
		text := map[string]string{}
		for p, v := range got {
			text[p] = l.content(v)
		}
		if d := cmp.Diff(want, text); d != "" {
			t.Error(d)
		}
	}
	held := l.hold(names...)
	check(held)
	check(l.look(slices.Collect(maps.Keys(want))...))
	s := l.survey()
	for _, n := range names {
		l.remove(n)
	}
	was := map[string]api.FileVersion{}
	for p, f := range l.changes(s) {
		was[p] = *f.Was
	}
	check(was)
	_, err := l.k.Save(t.Context(), Snapshot{Task: "t", Number: 1, Files: held})
	l.must(err)
}

func TestWhatMayNotBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	l := newBench(t, Options{Git: "none"})
	l.write("closed/x", "1")
	l.write("secret", "1")
	l.must(os.Chmod(l.at("closed"), 0))
	l.must(os.Chmod(l.at("secret"), 0))
	t.Cleanup(func() { _ = os.Chmod(l.at("closed"), 0o700) })
	if v := l.hold("secret")["secret"]; v.Kind != api.KindFile || v.Hash != "" || v.Blob != "" {
		t.Errorf("held: %+v", v)
	}
	if v := l.look("closed/x")["closed/x"]; v.Kind != api.KindOther {
		t.Errorf("behind a closed folder: %+v", v)
	}
	s := l.survey()
	if u := s.unheld; u.Files != 1 || len(u.Folders) != 1 || u.Folders[0] != "closed" {
		t.Errorf("unheld: %+v", u)
	}
	// What becomes visible did not come with the command.
	l.must(os.Chmod(l.at("closed"), 0o700))
	if got := l.changes(s); len(got) != 0 {
		t.Errorf("changes: %v", got)
	}
}

func TestADiskThatRefuses(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	l.must(os.MkdirAll(filepath.Dir(l.data), 0o777))
	l.must(os.WriteFile(l.data, []byte("a file where the folder should be"), 0o600))
	if _, err := l.k.Hold(t.Context(), []string{"a"}); err == nil {
		t.Error("nothing could be kept, and nobody said so")
	}
	// A survey is right all the same, and says that nothing could be kept.
	s := l.survey()
	if u := s.unheld; u.Trouble == nil || u.Files != 1 {
		t.Errorf("unheld: %+v", u)
	}
	l.write("a", "2")
	list, err := s.Changes(t.Context())
	if !errors.Is(err, ErrUnkept) || len(list) != 1 || list[0].Was.Hash == "" || list[0].Was.Blob != "" {
		t.Errorf("changes: %+v, %v", list, err)
	}
}

func TestACallerWhoGivesUp(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.k.Survey(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("survey: %v", err)
	}
	if _, err := l.k.Hold(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("hold: %v", err)
	}
	s := l.survey()
	if _, err := s.Changes(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("changes: %v", err)
	}
	for i := range 200 {
		l.write(fmt.Sprint("f", i), "")
	}
	l.write(".gitignore", strings.Repeat("b*\n", 1<<18)) // each file is compared with each rule
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	g, err := l.k.w.OpenTree()
	l.must(err)
	defer g.Close()
	if _, err := l.k.walk(ctx, g, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a walk among very many rules: got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestAWorkspaceThatWent(t *testing.T) {
	l := newBench(t, Options{})
	l.must(os.Rename(l.root, l.root+"2"))
	if _, err := l.k.Survey(t.Context()); err == nil {
		t.Error("a survey of nothing")
	}
	l.must(os.Symlink(l.root+"2", l.root))
	if _, err := l.k.Look(t.Context(), []string{"a"}); err == nil {
		t.Error("the workspace's place is a link now, and was followed")
	}
}
