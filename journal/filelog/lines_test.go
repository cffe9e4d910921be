package filelog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// told is what reading from a commit on gives, a line for each step.
func toldBy(t *testing.T, r journal.Reader, from uint64) (commits, lines []string) {
	t.Helper()
	say := func(seq uint64, events []journal.Event, err error) string {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			return fmt.Sprintf("%d is lost", lost.Seq)
		}
		return fmt.Sprintf("%d %s %v", seq, events, err)
	}
	for c, err := range r.Read(t.Context(), from) {
		commits = append(commits, say(c.Seq, c.Events, err))
	}
	for l, err := range r.(journal.LineReader).Lines(t.Context(), from) {
		var events []journal.Event
		if err == nil {
			events, err = l.Events()
		}
		lines = append(lines, say(l.Seq, events, err))
	}
	return commits, lines
}

// Lines are the commits of Read: with damage in the middle, in a log that begins with
// another one, from any place on, and for an owner.
func TestLinesAreTheCommits(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	fill := func(o journal.Owner, n int) {
		for i := range n {
			if _, err := o.Append(ctx, journal.Draft{By: "r", Events: []journal.Event{fmt.Appendf(nil, `{"n":"event %d"}`, i), []byte(`{}`)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Barrier(ctx); err != nil {
			t.Fatal(err)
		}
	}
	same := func(what string, r journal.Reader, head uint64) {
		t.Helper()
		for _, at := range []uint64{0, 1, head / 2, head, head + 1} {
			commits, lines := toldBy(t, r, at)
			if d := cmp.Diff(commits, lines); d != "" || at < head && len(commits) == 0 {
				t.Errorf("%s from %d: %s", what, at, d)
			}
		}
	}
	owner := func(dir string, n int) {
		o, err := filelog.Own(ctx, dir, filelog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fill(o, n)
		head, err := o.Head(ctx)
		same("an owner of "+filepath.Base(dir), o, head)
		if err = errors.Join(err, o.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := filelog.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		same("a reader of "+filepath.Base(dir), r, head)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	owner(from, 150)
	if err := errors.Join(os.Mkdir(to, 0o700), filelog.Begin(ctx, to, from, 90)); err != nil {
		t.Fatal(err)
	}
	owner(to, 70)
	path := filepath.Join(to, "journal.jsonl")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), "event 33", "event EE", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	owner(to, 1)
}

func TestLinesOfAClosedLog(t *testing.T) {
	dir := t.TempDir()
	o, err := filelog.Own(t.Context(), dir, filelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := filelog.OpenReader(dir)
	if err = errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.(journal.LineReader).Lines(stopped, 1) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after its context ended: %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range r.(journal.LineReader).Lines(t.Context(), 1) {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("after it was closed: %v", err)
		}
	}
}
