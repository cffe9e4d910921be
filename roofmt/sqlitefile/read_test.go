package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var big = strings.Repeat("b", 3000)

// What other programs hold, and had held when they were killed, in both of SQLite's ways to keep transactions. The reader
// sees each transaction that ended and no other, and leaves no trace.
func TestWhatTheOwnerDoesNow(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about what another process does, and the race detector takes ten times as long")
	}
	fill := "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v+1 FROM n WHERE v < 300) INSERT INTO t SELECT 'more ' || v || '" + big + "' FROM n"
	many := []string{"a"}
	for i := range 300 {
		many = append(many, fmt.Sprintf("more %d%s", i+1, big))
	}
	for name, c := range map[string]struct {
		made, does []string
		kill       bool
		want       []string
	}{
		"closed":             {made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"}, want: []string{"a"}},
		"closed, with a log": {made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"}, want: []string{"a"}},
		"open, in the log only": {
			made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"PRAGMA wal_autocheckpoint=0", "INSERT INTO t VALUES('b')", "UPDATE t SET name='A' WHERE name='a'"}, want: []string{"A", "b"},
		},
		"all of it in the log": {
			does: []string{"PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"}, want: []string{"a"},
		},
		"a transaction with a log": {
			made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"INSERT INTO t VALUES('b')", "PRAGMA cache_size=5", "BEGIN EXCLUSIVE", fill, "UPDATE t SET name='no'"}, want: []string{"a", "b"},
		},
		"a log used again": {
			made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)"},
			does: []string{fill, "DELETE FROM t", "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t VALUES('b')"}, want: []string{"b"},
		},
		"shrunk in the log": {
			made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", fill, "DELETE FROM t", "INSERT INTO t VALUES('a')"},
			does: []string{"PRAGMA wal_autocheckpoint=0", "VACUUM"}, want: []string{"a"},
		},
		"a transaction that locks": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"BEGIN EXCLUSIVE", "UPDATE t SET name='no'"}, want: []string{"a"},
		},
		"a transaction that is half written": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')", fill},
			does: []string{"PRAGMA cache_size=5", "BEGIN EXCLUSIVE", "UPDATE t SET name='no' || name", fill}, want: many,
		},
		"killed in a transaction": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')", fill},
			does: []string{"PRAGMA cache_size=5", "BEGIN EXCLUSIVE", "UPDATE t SET name='no' || name", fill}, kill: true, want: many,
		},
		"killed in a transaction that was never synced": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')", fill},
			does: []string{"PRAGMA synchronous=OFF", "PRAGMA cache_size=5", "BEGIN EXCLUSIVE", "UPDATE t SET name='no' || name", fill}, kill: true, want: many,
		},
		"killed with a log": {
			made: []string{"PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"INSERT INTO t VALUES('b')", "PRAGMA cache_size=5", "BEGIN IMMEDIATE", fill}, kill: true, want: []string{"a", "b"},
		},
		"it locks all and for good": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"PRAGMA locking_mode=EXCLUSIVE", "INSERT INTO t VALUES('b')"}, want: []string{"a", "b"},
		},
		"a journal that is kept": {
			made: []string{"CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"PRAGMA journal_mode=PERSIST", fill, "DELETE FROM t WHERE name LIKE 'more%'", "INSERT INTO t VALUES('b')"}, want: []string{"a", "b"},
		},
		"large pages": {
			made: []string{"PRAGMA page_size=65536", "PRAGMA journal_mode=WAL", "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')"},
			does: []string{"INSERT INTO t VALUES('b')"}, want: []string{"a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := database(t, c.made...)
			if c.does != nil {
				w := writer(t, file, c.does...)
				if c.kill {
					if err := w.Process.Kill(); err != nil {
						t.Fatal(err)
					}
					_ = w.Wait()
				}
			}
			before := around(t, file)
			got, err := names(file)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%d rows, not the %d wanted (%v)", len(got), len(c.want), err)
			}
			if around(t, file) != before {
				t.Error("reading left a trace")
			}
		})
	}
}

func TestWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	whole := database(t, "CREATE TABLE t(name)", "INSERT INTO t VALUES('a')")
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	odd := slices.Clone(raw)
	odd[16], odd[17] = 0, 7
	for name, content := range map[string][]byte{"empty": {}, "text": []byte(strings.Repeat("no database ", 20)), "cut": raw[:90], "odd pages": odd, "zeros": make([]byte, 8192)} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		// What begins as a database does is judged by SQLite, in its own words.
		_, err := names(file)
		judged := name == "cut" || name == "odd pages"
		if err == nil || !judged && !errors.Is(err, ErrNoDatabase) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got the error %v, want %v that names the file", name, err, ErrNoDatabase)
		}
	}
	if _, err := names(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := names(dir); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("a folder: %v", err)
	}
	long := filepath.Join(dir, "long")
	for _, suffix := range []string{"-wal", "-journal"} {
		if err := os.WriteFile(long, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(long+suffix, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(long+suffix, maxCopy+1); err != nil {
			t.Fatal(err)
		}
		got, err := names(long)
		if suffix == "-wal" && (err != nil || len(got) != 1) {
			t.Errorf("beside a log without end: got %d rows and the error %v, want 1 row", len(got), err)
		}
		if suffix == "-journal" && !errors.Is(err, errTooLong) {
			t.Errorf("beside a journal without end: got the error %v, want %v", err, errTooLong)
		}
		if err := os.Remove(long + suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// Damage of any kind is an error or fewer rows, and never a crash.
func TestDamagedDatabases(t *testing.T) {
	file := database(t, "PRAGMA journal_mode=WAL", "CREATE TABLE t(name)")
	writer(t, file, "PRAGMA wal_autocheckpoint=0", "INSERT INTO t VALUES('a')", "INSERT INTO t VALUES('"+big+"')")
	random := rand.New(rand.NewPCG(7, 7))
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(file + suffix)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for round := range 120 {
			broken := slices.Clone(raw)
			if round%3 == 0 {
				broken = broken[:random.IntN(len(broken))]
			} else {
				for range 1 + random.IntN(40) {
					broken[random.IntN(len(broken))] ^= byte(1 + random.IntN(255))
				}
			}
			copied := filepath.Join(dir, fmt.Sprint(round))
			for s, content := range map[string][]byte{"": must(os.ReadFile(file)), "-wal": must(os.ReadFile(file + "-wal")), suffix: broken} {
				if err := os.WriteFile(copied+s, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := names(copied)
			if err == nil && len(got) > 2 {
				t.Errorf("round %d: %d rows were made up", round, len(got))
			}
			if errors.Is(err, ErrRestless) {
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// A sum that every transaction keeps shows whether pages of two of them ever meet.
func TestReadingBesideABusyWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("another process writes for long")
	}
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			file := database(t, "PRAGMA journal_mode="+mode, "CREATE TABLE account(id INTEGER PRIMARY KEY, held INTEGER, pad TEXT)",
				"WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v+1 FROM n WHERE v < 60) INSERT INTO account SELECT v, 100, '"+big+"' FROM n")
			db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_pragma=wal_autocheckpoint(20)")
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			stop := make(chan struct{})
			var written atomic.Int64
			var done sync.WaitGroup
			done.Go(func() {
				for i := 0; ; i++ {
					written.Add(1)
					select {
					case <-stop:
						return
					default:
					}
					_, err := db.Exec("BEGIN; UPDATE account SET held = held - 7 WHERE id = ?; UPDATE account SET held = held + 7 WHERE id = ?; COMMIT", 1+i%60, 1+i*7%60)
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
			read, restless := 0, 0
			for i := 0; i < 60 || written.Load() < 400; i++ {
				var sum, n int
				err := Read(context.Background(), file, func(ctx context.Context, db *sql.DB) error {
					return db.QueryRowContext(ctx, "SELECT sum(held), count(*) FROM account").Scan(&sum, &n)
				})
				switch {
				case errors.Is(err, ErrRestless):
					restless++
				case err != nil:
					t.Errorf("%v", err)
				case sum != 6000 || n != 60:
					t.Errorf("%d in %d accounts: pages of two transactions met", sum, n)
				default:
					read++
				}
			}
			close(stop)
			done.Wait()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if mode == "WAL" && read == 0 {
				t.Errorf("never read, %d times restless", restless)
			}
			t.Logf("%d read, %d restless, beside %d transactions", read, restless, written.Load())
		})
	}
}

func TestReadingIsCancelled(t *testing.T) {
	file := database(t, "CREATE TABLE t(name)")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Read(ctx, file, func(ctx context.Context, db *sql.DB) error {
		return db.PingContext(ctx)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want errors.Is(err, context.Canceled)", err)
	}
}

// Whatever the caller asks for, nothing is written.
func TestNothingCanBeWritten(t *testing.T) {
	file := database(t, "PRAGMA journal_mode=WAL", "CREATE TABLE t(name)")
	before := around(t, file)
	err := Read(context.Background(), file, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "INSERT INTO t VALUES('x')")
		return err
	})
	if err == nil || around(t, file) != before {
		t.Errorf("written: %v", err)
	}
}

func TestNewest(t *testing.T) {
	file := database(t, "PRAGMA journal_mode=WAL", "CREATE TABLE t(name)")
	if changed, size := Newest(file + ".absent"); changed != 0 || size != 0 {
		t.Error("an absent one has a time")
	}
	_, before := Newest(file)
	writer(t, file, "PRAGMA wal_autocheckpoint=0", "INSERT INTO t VALUES('a')")
	if _, after := Newest(file); after == before {
		t.Error("what stands in the log only does not show")
	}
}
