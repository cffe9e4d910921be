package postgres_test

import (
	"context"
	"testing"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/journaltest"
	"github.com/roost-dev/roost/journal/postgres"
)

func seal(log, key string) *journal.Seal {
	k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
	return &journal.Seal{Log: log, Sign: &k, Verify: []journal.Key{k}}
}

// openURL opens the journals of a database that has its tables.
func openURL(t *testing.T, url string, opt postgres.Options) *postgres.Journals {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	j := postgres.Open(t.Context(), db, opt)
	t.Cleanup(func() {
		j.Close()
		db.Close()
	})
	return j
}

// open migrates a database and opens its journals.
func open(t *testing.T, url string, opt postgres.Options) *postgres.Journals {
	t.Helper()
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	return openURL(t, url, opt)
}

func TestSuite(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	for name, c := range map[string]struct {
		owner, reader *postgres.Journals
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
