package postgres_test

import (
	"context"
	"testing"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/journaltest"
	"github.com/roost-dev/roost/journal/postgres"
)

func seal(log, key string) *journal.Seal {
	k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
	return &journal.Seal{Log: log, Sign: &k, Verify: []journal.Key{k}}
}

// open opens a database that is migrated.
func open(t *testing.T, url string, opt postgres.Options) *postgres.DB {
	t.Helper()
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), url, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func TestSuite(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	for name, c := range map[string]struct {
		owner, reader *postgres.DB
		seal          *journal.Seal
	}{
		"one server":  {db, db, nil},
		"two servers": {db, other, nil},
		"signed":      {db, other, seal("group/task", "00000001")},
	} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journaltest.Backend {
				return journaltest.Backend{
					Own: func(ctx context.Context) (journal.Owner, error) {
						return c.owner.Own(ctx, t.Name(), postgres.OwnOptions{By: "test", Seal: c.seal})
					},
					Open: func(ctx context.Context) (journal.Reader, error) { return c.reader.OpenReader(ctx, t.Name(), c.seal) },
				}
			})
		})
	}
}
