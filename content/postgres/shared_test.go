package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/content/contenttest"
	"github.com/roost-dev/roost/content/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	journals "github.com/roost-dev/roost/journal/postgres"
)

// put writes contents in one batch.
func put(t *testing.T, s content.Store, list ...string) {
	t.Helper()
	b := fixture.Must[content.Batch](t)(s.Begin(t.Context()))
	defer b.Discard()
	for _, c := range list {
		fixture.Must[content.Hash](t)(b.Add([]byte(c)))
	}
	fixture.NoError(t, b.Close())
}

func collect(t *testing.T, s content.Store) content.Collected {
	t.Helper()
	return fixture.Must[content.Collected](t)(s.Collect(t.Context(), content.CollectOptions{}))
}

// count is the number of rows of a table.
func count(t *testing.T, db *database.DB, table string) (n int) {
	t.Helper()
	fixture.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FROM roost.`+table).Scan(&n))
	return n
}

// What two stores and a journal have is there once, and stays while one of them has it.
func TestOneOfEach(t *testing.T) {
	url, db := migrated(t)
	stores := server(t, url, postgres.Options{})
	x, y := stores.Store("x"), stores.Store("y")
	text := strings.Repeat("a payload of a journal\n", 20_000)
	put(t, x, text)
	put(t, y, text)
	j := journals.Open(t.Context(), db, journals.Options{})
	defer j.Close()
	o, err := j.Own(t.Context(), "task", journals.OwnOptions{By: "test"})
	fixture.NoError(t, err)
	defer func() { fixture.NoError(t, o.Close()) }()
	h, err := o.PutBlob(t.Context(), []byte(text))
	fixture.NoError(t, err)
	if n := count(t, db, "contents"); n != 1 || string(h) != string(contenttest.HashOf(text)) {
		t.Errorf("got %d payloads, want 1", n)
	}
	var stored int64
	fixture.NoError(t, db.QueryRow(t.Context(), `SELECT sum(length(data)) FROM roost.chunks`).Scan(&stored))
	if stored > 10_000 {
		t.Errorf("a journal's payload takes %d bytes, want it compressed", stored)
	}
	x.Settle()
	if got := collect(t, x); got.Removed != 1 || count(t, db, "contents") != 1 || x.Contains(t.Context(), content.Hash(h)) {
		t.Errorf("the first store: got %+v, want it removed there only", got)
	}
	y.Settle()
	if got := collect(t, y); got.Removed != 1 || got.After != 0 || count(t, db, "contents") != 1 {
		t.Errorf("the second store: got %+v, want it removed there only", got)
	}
	blob, err := o.Blob(t.Context(), h)
	fixture.NoError(t, err)
	if data := fixture.Must[[]byte](t)(blob.ReadAll()); string(data) != text {
		t.Errorf("the journal reads %d bytes, want %d", len(data), len(text))
	}
	_, err = db.Exec(t.Context(), `DELETE FROM roost.blobs`)
	fixture.NoError(t, err)
	collect(t, y)
	if n, m := count(t, db, "contents"), count(t, db, "chunks"); n+m != 0 {
		t.Errorf("got %d payloads and %d pieces, want none", n, m)
	}
}

// A server whose lease has ended relies on nothing it held, gets an error, and can do its work again.
func TestALeaseThatWasEnded(t *testing.T) {
	url, db := migrated(t)
	ctx := t.Context()
	s, other := server(t, url, postgres.Options{}).Store("s"), server(t, url, postgres.Options{}).Store("s")
	state := func(b content.Batch) (content.Hash, error) {
		return b.AddManifest(content.Manifest{Files: []content.File{{Path: "f", Hash: contenttest.HashOf("file")}}})
	}
	put(t, s, "file")
	b := fixture.Must[content.Batch](t)(s.Begin(ctx))
	defer b.Discard()
	fixture.Must[content.Hash](t)(state(b)) // it relies on what was written before
	end := func() {
		t.Helper()
		put(t, other, "garbage")
		other.Settle()
		for range 100 { // its server lives, and may renew it in between
			_, err := db.Exec(ctx, `UPDATE roost.leases SET lease_until = clock_timestamp()`)
			fixture.NoError(t, err)
			if got := collect(t, other); got.Kept == 0 {
				return
			}
		}
		t.Fatal("something is kept for an ended lease")
	}
	end()
	if err := b.Close(); !errors.Is(err, content.ErrMissing) {
		t.Errorf("a manifest whose file was removed: got %v, want ErrMissing", err)
	}
	for range 2 {
		put(t, s, "file")
		b := fixture.Must[content.Batch](t)(s.Begin(ctx))
		h := fixture.Must[content.Hash](t)(state(b))
		fixture.NoError(t, b.Close())
		if !s.Has(ctx, h) {
			t.Error("what was written again is not there")
		}
		fixture.NoError(t, s.SetName(ctx, "t", h))
		fixture.NoError(t, s.RemoveName(ctx, "t"))
		end()
		if err := s.SetName(ctx, "t", h); !errors.Is(err, content.ErrMissing) {
			t.Errorf("a name for what was removed: got %v, want ErrMissing", err)
		}
		if there, err := s.Find(ctx, h); there || err != nil {
			t.Errorf("found %v, %v, want that it is gone", there, err)
		}
	}
}

// What Prefetch found is held, and Has knows it without asking.
func TestPrefetch(t *testing.T) {
	url, _ := migrated(t)
	ctx := t.Context()
	stores := server(t, url, postgres.Options{})
	s, other := stores.Store("s"), stores.Store("s").(*postgres.Store)
	put(t, s, "a", "b")
	s.Settle()
	release := other.Keep()
	hash := contenttest.HashOf
	fixture.NoError(t, other.Prefetch(ctx, []content.Hash{hash("a"), hash("c"), "no hash"}))
	if got := collect(t, s); got.Kept != 1 || got.Removed != 1 {
		t.Errorf("got %+v, want what was found kept", got)
	}
	for text, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if got := other.Has(ctx, hash(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	put(t, s, "c")
	if there, err := other.Find(ctx, hash("c")); !there || err != nil {
		t.Errorf("what came since: got %v, %v, want that it is found", there, err)
	}
	release()
	other.Settle()
	s.Settle()
	if got := collect(t, s); got.Kept != 0 {
		t.Errorf("got %+v, want nothing kept", got)
	}
}

// Pieces that an earlier version stored as they are, although they could be smaller, are read.
func TestPiecesThatAreNotCompressed(t *testing.T) {
	url, db := migrated(t)
	text := strings.Repeat("x", 300_000)
	k := fixture.Must[content.Key](t)(contenttest.HashOf(text).Key())
	s := server(t, url, postgres.Options{}).Store("s")
	put(t, s, "another")
	for _, sql := range []string{
		`INSERT INTO roost.contents (hash, size, stored) VALUES ($1, 300000, 300000)`,
		`INSERT INTO roost.chunks SELECT $1, n, convert_to(repeat('x', least(262144, 300000 - n * 262144)), 'UTF8') FROM generate_series(0, 1) AS n`,
		`INSERT INTO roost.kept SELECT id, $1, false FROM roost.content_stores`,
	} {
		_, err := db.Exec(t.Context(), sql, k[:])
		fixture.NoError(t, err)
	}
	if data, err := s.Read(t.Context(), k.Hash(), 0); err != nil || string(data) != text {
		t.Errorf("got %d bytes, %v, want %d", len(data), err, len(text))
	}
}
