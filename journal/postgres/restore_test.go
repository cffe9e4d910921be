package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/database/payload"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/journal/postgres"
)

// write appends a commit with a payload for each text, and closes the owner.
func write(t *testing.T, o journal.Owner, err error, texts ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		h, err := o.PutBlob(t.Context(), bytes.Repeat([]byte(text), 100_000))
		if err != nil {
			t.Fatal(err)
		}
		d := journal.Draft{At: 1, By: "test", Blobs: []journal.Hash{h}, Events: []journal.Event{fmt.Appendf(nil, `{"text":%q}`, text)}}
		if _, err := o.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(o.Barrier(t.Context()), o.Close()); err != nil {
		t.Fatal(err)
	}
}

// inFolder gives a new folder with a journal: a new one, or a fork of another one at commit seq.
func inFolder(t *testing.T, from string, seq uint64, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	if from != "" {
		if err := filelog.Begin(t.Context(), dir, from, seq); err != nil {
			t.Fatal(err)
		}
	}
	o, err := filelog.Own(t.Context(), dir, filelog.Options{By: "test", Seal: seal("folder", "00000001")})
	write(t, o, err, texts...)
	return dir
}

func opened(t *testing.T, log journal.Stored, err error) journal.Stored {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// content is what a log holds: its commits with their numbers and epochs, and the first bytes of their payloads.
func content(t *testing.T, log journal.Stored) (list []string) {
	t.Helper()
	for c, err := range log.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		text := string(c.Events[0])
		if strings.Contains(text, "epoch.opened") {
			text = "owner"
		}
		for _, h := range c.Blobs {
			b, err := log.Blob(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			data, err := b.ReadAll()
			if err := errors.Join(err, b.Close()); err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf(" %s %d", data[:1], len(data))
		}
		list = append(list, fmt.Sprint(c.Seq, " ", c.Epoch, " ", text))
	}
	return list
}

func sums(t *testing.T, log journal.Stored, at ...uint64) []journal.Sum {
	t.Helper()
	list, err := journal.Sums(t.Context(), log, at...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// oneBuffer yields each line in the memory of the one before it, as Lines may.
type oneBuffer struct{ journal.Stored }

func (b oneBuffer) Lines(ctx context.Context, from uint64) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		var text []byte
		for l, err := range b.Stored.Lines(ctx, from) {
			text = append(text[:0], l.Text...)
			l.Text = text
			if !yield(l, err) {
				return
			}
		}
	}
}

// A journal that does not fit into one statement, neither by the number of its commits nor by their bytes.
func TestRestoreOfALongJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and much data: the race detector finds nothing here and takes long")
	}
	dir := t.TempDir()
	o, err := filelog.Own(t.Context(), dir, filelog.Options{By: "test", Seal: seal("folder", "00000001")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		size := 10
		if i%1000 < 4 {
			size = 3 << 20
		}
		event := fmt.Appendf(nil, `{"n":%d,"text":%q}`, i, strings.Repeat("x", size))
		if _, err := o.Append(t.Context(), journal.Draft{At: 1, By: "test", Events: []journal.Event{event}}); err != nil {
			t.Fatal(err)
		}
		if size > 10 || i%500 == 0 {
			if err := o.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(o.Barrier(t.Context()), o.Close()); err != nil {
		t.Fatal(err)
	}
	source, err := filelog.OpenReader(dir)
	source = opened(t, source, err)
	j := open(t, pgtest.Shared(t).Database(t), postgres.Options{})
	if err := j.Restore(t.Context(), "long", 0, oneBuffer{source}); err != nil {
		t.Fatal(err)
	}
	stored, err := j.OpenReader(t.Context(), "long", nil)
	stored = opened(t, stored, err)
	got, want := sums(t, stored), sums(t, source)
	if d := cmp.Diff(want, got); d != "" || got[len(got)-1].Head < 2500 {
		t.Errorf("got %d commits: -in files +in the database\n%s", got[len(got)-1].Head, d)
	}
}

// A journal in files, a fork of it, and a fork of the fork are the same bytes in a database and back in files; both
// backends go on with them.
func TestJournalsMoveBetweenBackends(t *testing.T) {
	j := open(t, pgtest.Shared(t).Database(t), postgres.Options{})
	plain := inFolder(t, "", 0, "a", "b", "c")
	fork := inFolder(t, plain, 3, "x", "y")
	again := inFolder(t, fork, 5, "z")
	before := inFolder(t, fork, 2, "w") // within what the fork begins with
	end := inFolder(t, fork, 3, "v")    // at the end of that
	for name, dir := range map[string]string{"plain": plain, "fork": fork, "again": again, "before": before, "end": end} {
		t.Run(name, func(t *testing.T) {
			source, err := filelog.OpenReader(dir)
			source = opened(t, source, err)
			if err := j.Restore(t.Context(), name, 0, source); err != nil {
				t.Fatal(err)
			}
			stored, err := j.OpenReader(t.Context(), name, nil)
			stored = opened(t, stored, err)
			if d := cmp.Diff(content(t, source), content(t, stored)); d != "" {
				t.Errorf("in the database: -in files +in the database\n%s", d)
			}
			if d := cmp.Diff(sums(t, source, 2, 4), sums(t, stored, 2, 4)); d != "" {
				t.Errorf("sums: -in files +in the database\n%s", d)
			}

			// The database goes on, and makes a fork of what has come.
			o, err := j.Own(t.Context(), name, postgres.OwnOptions{By: "test"})
			epoch := o.Epoch()
			write(t, o, err, "1", "2")
			grown := content(t, stored)
			if want := fmt.Sprint(len(grown), " ", epoch, " "); !strings.HasPrefix(grown[len(grown)-1], want) {
				t.Errorf("the newest commit is %q; want it to begin with %q", grown[len(grown)-1], want)
			}
			if err := j.Begin(t.Context(), name+"-fork", name, uint64(len(grown)-1)); err != nil {
				t.Fatal(err)
			}
			o, err = j.Own(t.Context(), name+"-fork", postgres.OwnOptions{By: "test"})
			write(t, o, err, "3")

			for _, moved := range []string{name, name + "-fork"} {
				stored, err := j.OpenReader(t.Context(), moved, nil)
				stored = opened(t, stored, err)
				back := t.TempDir()
				if err := filelog.Restore(t.Context(), back, stored); err != nil {
					t.Fatal(err)
				}
				files, err := filelog.OpenReader(back)
				files = opened(t, files, err)
				if d := cmp.Diff(content(t, stored), content(t, files)); d != "" {
					t.Errorf("%s back in files: -in the database +in files\n%s", moved, d)
				}
				if d := cmp.Diff(sums(t, stored, 2, 4), sums(t, files, 2, 4)); d != "" {
					t.Errorf("sums of %s: -in the database +in files\n%s", moved, d)
				}
				o, err = filelog.Own(t.Context(), back, filelog.Options{By: "test"})
				write(t, o, err, "4")
				if got, had := content(t, files), content(t, stored); len(got) != len(had)+2 || !strings.HasSuffix(got[len(got)-1], "4 100000") {
					t.Errorf("%s goes on in files as %q", moved, got)
				}
			}
			want, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			back := t.TempDir()
			if err := filelog.Restore(t.Context(), back, source); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(back, "journal.jsonl")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("the log's own lines are not the same bytes: %d of %d, %v", len(got), len(want), err)
			}
		})
	}
}

// A journal in files is extended only by one that begins with it, and whose numbering goes on in it.
func TestExtend(t *testing.T) {
	plain := inFolder(t, "", 0, "a", "b", "c")
	fork := inFolder(t, plain, 3, "x")
	data, err := os.ReadFile(filepath.Join(plain, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	beginning := func(n int, more string) string {
		dir := t.TempDir()
		text := append(bytes.Join(lines[:n], nil), more...)
		if err := os.WriteFile(filepath.Join(dir, "journal.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		dir, from string
		over      uint64
		want      string
	}{
		"its own commits":       {beginning(2, ""), plain, 2, ""},
		"a fork's own commits":  {beginning(2, ""), fork, 2, "within the base of the other journal"},
		"another head":          {beginning(2, ""), plain, 1, "commit 2, not 1"},
		"an unfinished line":    {beginning(2, `{"seq":3`), plain, 2, "not finished"},
		"a journal of its size": {beginning(4, ""), plain, 4, ""},
	} {
		source, err := filelog.OpenReader(c.from)
		err = filelog.Extend(t.Context(), c.dir, c.over, opened(t, source, err))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the error is %v; want %q", name, err, c.want)
		}
		if got, _ := os.ReadFile(filepath.Join(c.dir, "journal.jsonl")); c.want == "" && !bytes.Equal(got, data) {
			t.Errorf("%s: the log is %d bytes, want the %d of the other one", name, len(got), len(data))
		}
	}
}

// The proof of a journal does not depend on where it is.
func TestProofMovesAlong(t *testing.T) {
	j := open(t, pgtest.Shared(t).Database(t), postgres.Options{})
	plain := inFolder(t, "", 0, "a", "b", "c")
	own, other := seal("folder", "00000001"), seal("folder", "00000002")
	for name, dir := range map[string]string{"plain": plain, "fork": inFolder(t, plain, 3, "x")} {
		for _, s := range []*journal.Seal{own, other} {
			files, err := filelog.OpenKnowing(dir, s, 0)
			files = opened(t, files, err)
			if s == own {
				if err := j.Restore(t.Context(), name, 0, files); err != nil {
					t.Fatal(err)
				}
			}
			stored, err := j.OpenReader(t.Context(), name, s)
			stored = opened(t, stored, err)
			want, err := files.(journal.Prover).Proof(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := stored.(journal.Prover).Proof(t.Context())
			if err != nil || got != want {
				t.Errorf("%s for key %s: the proof is %+v, %v; want %+v", name, s.Sign.ID, got, err, want)
			}
		}
	}
}

// What cannot be whole in its new place is not there at all.
func TestRestoreAllOrNothing(t *testing.T) {
	j := open(t, pgtest.Shared(t).Database(t), postgres.Options{})
	source := func(dir string) journal.Stored {
		log, err := filelog.OpenReader(dir)
		return opened(t, log, err)
	}
	refused := func(why, name string, over uint64, from journal.Stored, want error) {
		t.Helper()
		before, _ := j.List(t.Context(), "")
		if err := j.Restore(t.Context(), name, over, from); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: the error is %v, want %v", why, err, want)
		}
		if after, _ := j.List(t.Context(), ""); !cmp.Equal(before, after) {
			t.Errorf("%s: the journals are %v, they were %v", why, after, before)
		}
	}

	lacking := inFolder(t, "", 0, "a", "b")
	blobs, err := filepath.Glob(filepath.Join(lacking, "blobs", "*", "*"))
	if err != nil || len(blobs) != 2 {
		t.Fatal(blobs, err)
	}
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	refused("without a payload", "lacking", 0, source(lacking), journal.ErrBlobMissing)
	if err := os.WriteFile(blobs[0], []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with another payload", "lacking", 0, source(lacking), journal.ErrBlobDamaged)

	damaged := inFolder(t, "", 0, "a", "b", "c")
	path := filepath.Join(damaged, "journal.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(`{"text":"b"}`), []byte(`{"text":"B"}`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with a damaged commit", "damaged", 0, source(damaged), nil)

	whole := inFolder(t, "", 0, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Restore(ctx, "whole", 0, source(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if err := j.Restore(t.Context(), "whole", 0, source(whole)); err != nil {
		t.Fatal(err)
	}
	refused("over a journal that was not there", "whole", 0, source(whole), nil)
	refused("over one with another head", "whole", 2, source(whole), nil)
	o, err := j.Own(t.Context(), "whole", postgres.OwnOptions{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var busy *journal.BusyError
	if err := j.Restore(t.Context(), "whole", 4, source(whole)); !errors.As(err, &busy) {
		t.Errorf("over one that has an owner: %v", err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Restore(t.Context(), "whole", 4, source(whole)); err != nil {
		t.Errorf("over one with the head that the caller knows: %v", err)
	}
	stored, err := j.OpenReader(t.Context(), "whole", nil)
	if got := len(content(t, opened(t, stored, err))); got != 3 {
		t.Errorf("it has %d commits, want 3", got)
	}
}

// A journal that is removed while another one begins with it: the new one has all of it.
func TestBeginWithAJournalThatIsRemoved(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), pgtest.Shared(t).Database(t)
	j := open(t, url, postgres.Options{})
	o, err := j.Own(ctx, "base", postgres.OwnOptions{By: "test"})
	write(t, o, err, "a", "b")
	base, err := j.OpenReader(ctx, "base", nil)
	want := content(t, opened(t, base, err))
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // it ends with the test
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Begin waits for this row: it has the number of the new journal.
	if _, err := tx.Exec(ctx, `INSERT INTO roost.commits (journal, seq, line) SELECT last_value + 1, 1, '' FROM roost.journals_id_seq`); err != nil {
		t.Fatal(err)
	}
	begun, removed := make(chan error, 1), make(chan error, 1)
	waiting := func(n int) bool {
		var got int
		err := j.DB().QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&got)
		return err == nil && got >= n
	}
	until := func(done func() bool) {
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing waits within a minute")
			}
		}
	}
	go func() { begun <- j.Begin(ctx, "fork", "base", uint64(len(want))) }()
	until(func() bool { return waiting(1) })
	go func() { removed <- j.Remove(ctx, "base") }()
	until(func() bool { return waiting(2) || len(removed) > 0 })
	if err := errors.Join(tx.Rollback(ctx), <-begun, <-removed); err != nil {
		t.Fatal(err)
	}
	if err := payload.Sweep(ctx, j.DB()); err != nil {
		t.Fatal(err)
	}
	fork, err := j.OpenReader(ctx, "fork", nil)
	if got := content(t, opened(t, fork, err)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
