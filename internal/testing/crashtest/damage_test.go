package crashtest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A log that lost a commit in its middle: nothing runs, not even with --yes, until a
// person has read what is lost and said so; then the task goes on and is not asked
// again.
func TestDamagedLogWaitsForAPerson(t *testing.T) {
	for _, provider := range []string{"script", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			b := newBench(t, provider, row{}.turns(""))
			args := append(append([]string{"run"}, b.Model...), "--yes", "-C", b.Workspace, "the words")
			if first := start(ctx, t, b, "reply.committed:2", args...); !first.Killed {
				t.Fatalf("%d: got %s, want first.Killed", first.Code, first.Errors)
			}
			ids, err := b.Tasks()
			if err != nil || len(ids) != 1 {
				t.Fatal(ids, err)
			}
			path := filepath.Join(b.Root(), "tasks", ids[0], "journal.jsonl")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := bytes.Index(data, []byte(`"type":"tool.finished"`))
			if at < 0 {
				t.Fatal("no call has an outcome")
			}
			data[at+8] ^= 1
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // however often it is tried
				c := start(ctx, t, b, "", "resume", ids[0], "--yes")
				if c.Code != 11 || !strings.Contains(c.Errors, "log is damaged") {
					t.Fatalf("it ended with %d: %s %s", c.Code, c.Lines, c.Errors)
				}
			}
			if _, err := os.Stat(filepath.Join(b.Workspace, "lines.txt")); err == nil {
				t.Fatal("a command ran")
			}
			if c := start(ctx, t, b, "", "resume", ids[0], "no"); c.Code != 4 {
				t.Errorf("refused, and it ended with %d: %s", c.Code, c.Errors)
			}
			if c := start(ctx, t, b, "", "resume", ids[0], "--yes"); c.Code != 11 {
				t.Errorf("asked again, and it ended with %d: %s", c.Code, c.Errors)
			}
			for _, words := range []string{"yes", "and now rest"} {
				if c := start(ctx, t, b, "", "resume", ids[0], words); c.Code != 0 {
					t.Fatalf("%q: got %d: %s, want c.Code = 0", words, c.Code, c.Errors)
				}
			}
		})
	}
}

// A line that was cut in the middle of its write never was a commit: the task is
// whole without it. Anything else that doctor finds counts.
func TestDoctorTellsATornLineFromDamage(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := newBench(t, "script", row{}.turns(""))
	args := append(append([]string{"run"}, b.Model...), "--yes", "-C", b.Workspace, "the words")
	if c := start(ctx, t, b, "", args...); c.Code != 0 {
		t.Fatalf("%d: got %s, want c.Code = 0", c.Code, c.Errors)
	}
	ids, err := b.Tasks()
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	path := filepath.Join(b.Root(), "tasks", ids[0], "journal.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"whole":         {whole, true},
		"torn":          {append(bytes.Clone(whole), `{"seq":99,"epo`...), true},
		"a lost commit": {bytes.Replace(whole, []byte("message.added"), []byte("message.aaded"), 1), false},
		"torn and lost": {append(bytes.Replace(whole, []byte("message.added"), []byte("message.aaded"), 1), "{"...), false},
	} {
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.Doctor(ctx); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want (err == nil) = c.ok", name, err)
		}
	}
}
