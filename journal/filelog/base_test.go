package filelog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// wrote appends commits to a new or old log and gives the name of its last blob.
func wrote(t *testing.T, dir string, texts ...string) journal.Hash {
	t.Helper()
	ctx := context.Background()
	o, err := filelog.Own(ctx, dir, filelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var h journal.Hash
	for _, text := range texts {
		if h, err = o.PutBlob(ctx, []byte("blob of "+text)); err != nil {
			t.Fatal(err)
		}
		d := journal.Draft{At: 1, By: "t", Blobs: []journal.Hash{h}, Events: []journal.Event{journal.Event(fmt.Sprintf(`{"text":%q}`, text))}}
		if _, err := o.Append(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(o.Barrier(ctx), o.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// begun is a log that begins with another one.
func begun(t *testing.T, from string, seq uint64) string {
	t.Helper()
	dir := t.TempDir()
	if err := filelog.Begin(context.Background(), dir, from, seq); err != nil {
		t.Fatal(err)
	}
	return dir
}

// told is what a log says, forwards and backwards: texts with their numbers and epochs.
func told(t *testing.T, dir string, from uint64) []string {
	t.Helper()
	ctx := context.Background()
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	line := func(c journal.Commit) string {
		text := string(c.Events[0])
		if strings.Contains(text, "epoch.opened") {
			text = "owner"
		}
		return fmt.Sprint(c.Seq, " ", c.Epoch, " ", text)
	}
	var out, back []string
	for c, err := range r.Read(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line(c))
	}
	for c, err := range r.ReadBackward(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Seq >= from {
			back = append([]string{line(c)}, back...)
		}
	}
	if d := cmp.Diff(out, back); d != "" {
		t.Fatalf("backwards it says other things: %s", d)
	}
	return out
}

func TestALogThatBeginsWithAnotherOneIsOneLog(t *testing.T) {
	base := t.TempDir()
	wrote(t, base, "a", "b", "c")
	fork := begun(t, base, 3)
	shared := wrote(t, fork, "x")
	wrote(t, base, "not the fork's")
	wrote(t, fork, "y")
	want := []string{
		`1 1 owner`, `2 1 {"text":"a"}`, `3 1 {"text":"b"}`,
		`4 2 owner`, `5 2 {"text":"x"}`, `6 3 owner`, `7 3 {"text":"y"}`,
	}
	for from := range uint64(9) {
		if d := cmp.Diff(want[min(max(int(from), 1)-1, 7):], told(t, fork, from), cmp.Transformer("none", func(l []string) []string { return append([]string{}, l...) })); d != "" {
			t.Errorf("from %d: %s", from, d)
		}
	}
	// A fork of the fork, and the bases gone.
	again := begun(t, fork, 5)
	wrote(t, again, "z")
	for _, dir := range []string{base, fork} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(append(want[:5:5], `6 3 owner`, `7 3 {"text":"z"}`), told(t, again, 1)); d != "" {
		t.Error(d)
	}
	r, err := filelog.OpenReader(again)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	if head, err := r.Head(ctx); head != 7 || err != nil {
		t.Errorf("head %d, %v", head, err)
	}
	if h, err := r.Health(ctx); err != nil || !h.OK() || h.Head != 7 {
		t.Errorf("health %+v, %v", h, err)
	}
	b, err := r.Blob(ctx, shared)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := b.ReadAll(); string(data) != "blob of x" || err != nil {
		t.Errorf("a blob of the base holds %q, %v", data, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestASnapshotOfTheBaseServesTheFork(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	wrote(t, base, "a")
	o, err := filelog.Own(ctx, base, filelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.SaveSnapshot(ctx, journal.Snapshot{Seq: 3, Data: []byte("state")}), o.Close()); err != nil {
		t.Fatal(err)
	}
	fork := begun(t, base, 3)
	own, err := filelog.Own(ctx, fork, filelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := own.Snapshot(ctx); err != nil || s.Seq != 3 || string(s.Data) != "state" {
		t.Errorf("the base's: %+v, %v", s, err)
	}
	seq, err := own.Append(ctx, journal.Draft{At: 1, Events: []journal.Event{journal.Event(`{}`)}})
	if err != nil || seq != 5 || own.Epoch() != 3 {
		t.Errorf("commit %d of epoch %d, %v", seq, own.Epoch(), err)
	}
	if err := errors.Join(own.Barrier(ctx), own.SaveSnapshot(ctx, journal.Snapshot{Seq: 5, Data: []byte("later")}), own.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := filelog.OpenReader(fork)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if s, err := r.Snapshot(ctx); err != nil || s.Seq != 5 || string(s.Data) != "later" {
		t.Errorf("its own: %+v, %v", s, err)
	}
	// One that shows more than the fork holds is not used.
	early := begun(t, base, 2)
	wrote(t, early, "x")
	e, err := filelog.OpenReader(early)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if s, err := e.Snapshot(ctx); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Errorf("got %+v, %v, want errors.Is(err, journal.ErrNoSnapshot)", s, err)
	}
}

func TestAForkWhoseBaseIsGoneOrDamagedSaysSo(t *testing.T) {
	base := t.TempDir()
	wrote(t, base, "a", "b")
	for name, harm := range map[string]func(dir string) error{
		"no log": func(dir string) error { return os.Remove(filepath.Join(dir, "base", "journal.jsonl")) },
		"no number": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "base", "base.json"), []byte(`{}`), 0o600)
		},
	} {
		fork := begun(t, base, 3)
		wrote(t, fork, "x")
		if err := harm(fork); err != nil {
			t.Fatal(err)
		}
		if _, err := filelog.OpenReader(fork); !errors.Is(err, filelog.ErrBase) {
			t.Errorf("%s: read: %v", name, err)
		}
		if _, err := filelog.Own(context.Background(), fork, filelog.Options{}); !errors.Is(err, filelog.ErrBase) {
			t.Errorf("%s: own: %v", name, err)
		}
	}
	if err := filelog.Begin(context.Background(), t.TempDir(), base, 9); err == nil {
		t.Error("a log begins with commits that do not exist")
	}
}

func TestAPayloadThatTheBaseLacksIsMissing(t *testing.T) {
	base := t.TempDir()
	lost := wrote(t, base, "a")
	fork := begun(t, base, 2)
	wrote(t, base, "of the base alone")
	wrote(t, fork, "b")
	health := func() journal.Health {
		r, err := filelog.OpenReader(fork)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		h, err := r.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := health(); !h.OK() {
		t.Errorf("got %+v, want a whole log", h)
	}
	if err := os.RemoveAll(filepath.Join(fork, "base", "blobs")); err != nil {
		t.Fatal(err)
	}
	if got, want := health().MissingBlobs, []journal.Hash{lost}; !slices.Equal(got, want) {
		t.Errorf("got missing payloads %v, want %v", got, want)
	}
}

// Who owns a log that begins with another one, and is asked or told how far it goes, hears
// of one log.
func TestANumberOfABegunLog(t *testing.T) {
	base := t.TempDir()
	wrote(t, base, "a", "b")
	dir := begun(t, base, 2)
	var asked, told []uint64
	for range 2 {
		o, err := filelog.Own(t.Context(), dir, filelog.Options{
			Meets:  func(head uint64) error { asked = append(asked, head); return nil },
			Synced: func(_, head uint64, _ bool) { told = append(told, head) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if head, err := o.Head(t.Context()); err != nil || head != told[len(told)-1] {
			t.Errorf("it goes to %d (%v), and %d was told", head, err, told)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]uint64{2, 3}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{3, 3, 4, 4}, told); diff != "" {
		t.Error(diff)
	}
}

// Who is refused leaves the log as it was, a torn end too, and lets it go.
func TestWhoIsRefusedWritesNothing(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, "a", "b")
	path := filepath.Join(dir, "journal.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"seq":4,"ep`)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("it moved")
	if _, err := filelog.Own(t.Context(), dir, filelog.Options{Meets: func(uint64) error { return no }}); !errors.Is(err, no) {
		t.Errorf("got %v, want errors.Is(err, no)", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("got %v\n%s\n%s, want no error and string(after) = string(before)", err, before, after)
	}
	wrote(t, dir, "c")
}
