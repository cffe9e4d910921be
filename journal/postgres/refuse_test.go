package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), sql)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Commits that another key has signed are not taken for this group's own.
func TestAnotherGroupsKey(t *testing.T) {
	db := open(t, pgtest.Shared(t).Database(t), postgres.Options{})
	theirs := seal("theirs/task", "00000001")
	o, err := db.Own(t.Context(), "task", postgres.OwnOptions{By: "them", Seal: theirs})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := o.Append(t.Context(), draft(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 4, Data: []byte("theirs")}); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		seal *journal.Seal
		want journal.Proof
	}{
		"their own":     {theirs, journal.Proof{}},
		"another key":   {seal("theirs/task", "00000002"), journal.Proof{Unknown: 4}},
		"another place": {seal("ours/task", "00000001"), journal.Proof{Altered: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := db.OpenReader(t.Context(), "task", c.seal)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.(journal.Prover).Proof(t.Context())
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
			_, err = r.Snapshot(t.Context())
			if own := c.want == (journal.Proof{}); own != (err == nil) || !own && !errors.Is(err, journal.ErrNoSnapshot) {
				t.Errorf("snapshot: got %v", err)
			}
		})
	}
}

// Rows that somebody changed, moved or deleted are named, and the others are read.
func TestDamage(t *testing.T) {
	cluster := pgtest.Shared(t)
	for name, c := range map[string]struct {
		sql  string
		want string // what the error says of commit 3
	}{
		"deleted":       {`DELETE FROM roost.commits WHERE seq = 3`, "its row is missing"},
		"a byte":        {`UPDATE roost.commits SET line = set_byte(line, 10, 88) WHERE seq = 3`, "checksum does not match"},
		"another's row": {`UPDATE roost.commits a SET line = b.line FROM roost.commits b WHERE a.seq = 3 AND b.seq = 4`, "it is commit 4"},
		"empty":         {`UPDATE roost.commits SET line = '' WHERE seq = 3`, "not a whole commit line"},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			db := open(t, url, postgres.Options{})
			o, _ := own(t, db, "task")
			defer o.Close() //nolint:errcheck // a barrier has saved it
			for i := range 5 {
				if _, err := o.Append(t.Context(), draft(i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := o.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
			execute(t, url, c.sql)
			for direction, list := range map[string]func() []string{
				"forward": func() (got []string) {
					for c, err := range o.Read(t.Context(), 1) {
						got = append(got, outcome(c, err))
					}
					return got
				},
				"backward": func() (got []string) {
					for c, err := range o.ReadBackward(t.Context(), 0) {
						got = append([]string{outcome(c, err)}, got...)
					}
					return got
				},
			} {
				want := "ok ok lost:3:" + c.want + " ok ok ok"
				if got := strings.Join(list(), " "); got != want {
					t.Errorf("%s: got %q, want %q", direction, got, want)
				}
			}
			h, err := o.Health(t.Context())
			if err != nil || h.OK() || len(h.Damaged) != 1 || h.Damaged[0].Seq != 3 {
				t.Errorf("health: got %+v, %v", h, err)
			}
		})
	}
}

func outcome(_ journal.Commit, err error) string {
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		return "lost:" + string('0'+rune(damage.Seq)) + ":" + damage.Reason
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// Held renews a lease that is too short, and names the owner that has lost it.
func TestHeld(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db := open(t, url, postgres.Options{Lease: 2 * time.Second})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // it is fenced
	h := o.(postgres.Holder)
	if err := h.Held(t.Context(), time.Second); err != nil {
		t.Errorf("a fresh lease: %v", err)
	}
	if err := h.Held(t.Context(), time.Minute); !errors.Is(err, journal.ErrNotSaved) {
		t.Errorf("longer than a lease is: got %v, want ErrNotSaved", err)
	}
	execute(t, url, `UPDATE roost.journals SET epoch = epoch + 1`)
	if err := h.Held(t.Context(), 2*time.Second); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("after another owner's epoch: got %v, want ErrFenced", err)
	}
	if _, err := o.Append(t.Context(), draft(1)); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append: got %v, want ErrFenced", err)
	}
}

// Held waits for a statement that has locked the journal's row, and answers by what it left.
func TestHeldWaitsForTheRow(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db := open(t, url, postgres.Options{Lease: time.Minute})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // it is fenced
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // its transaction has ended
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `UPDATE roost.journals SET epoch = epoch + 1`)
	}
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() { held <- o.(postgres.Holder).Held(t.Context(), time.Minute) }()
	for waits := 0; waits == 0; time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-held:
			t.Fatalf("got %v before the other statement ended", err)
		default:
		}
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-held; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
}
