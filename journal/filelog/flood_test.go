package filelog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// A log may end in millions of lines that are none. They are no millions of losses, and
// whoever goes on behind them gives out a number that readers take.
func TestAFloodOfBadLinesAtTheEnd(t *testing.T) {
	line, err := journal.EncodeCommit(journal.Commit{Seq: 1, Epoch: 1, At: 1, By: "t", Events: []journal.Event{[]byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flood []byte
	}{
		{"line breaks", bytes.Repeat([]byte("\n"), 1<<20+100)},
		{"short words", bytes.Repeat([]byte("x\n"), 5000)},
		{"then zeros", append(bytes.Repeat([]byte("x\n"), 5000), append(make([]byte, 40), '\n', 'y', '\n')...)},
		{"zeros first", append(append(make([]byte, 40), '\n'), bytes.Repeat([]byte("x\n"), 5000)...)},
	} {
		if testing.Short() && len(c.flood) > 1<<20 {
			continue // the race detector makes a minute of it
		}
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "journal.jsonl")
			if err := os.WriteFile(path, append(line, c.flood...), 0o600); err != nil {
				t.Fatal(err)
			}
			r := reading(t, dir)
			h, err := r.Health(t.Context())
			if err != nil || len(h.Damaged) > 100 {
				t.Errorf("%d places are named: %v", len(h.Damaged), err)
			}
			own := mustOwn(t, dir, filelog.Options{})
			seq, err := own.Append(t.Context(), journal.Draft{At: 2, By: "t", Events: []journal.Event{[]byte(`{"type":"x"}`)}})
			if err != nil {
				t.Fatal(err)
			}
			if err := own.Close(); err != nil {
				t.Fatal(err)
			}
			r = reading(t, dir)
			var last uint64
			for got, err := range r.Read(t.Context(), 1) {
				if err == nil {
					last = got.Seq
				}
			}
			if last != seq {
				t.Fatalf("%d was appended, the last commit that is read is %d", seq, last)
			}
		})
	}
}

func reading(t *testing.T, dir string) journal.Reader {
	t.Helper()
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}
