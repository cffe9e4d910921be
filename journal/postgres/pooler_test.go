package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/journaltest"
	"github.com/roost-dev/roost/journal/postgres"
)

// Behind a pooler in transaction mode a session is another one for each statement, and no notification comes: journals
// behave as without, and followers poll.
func TestPooler(t *testing.T) {
	c := pgtest.Shared(t)
	through := c.Pooler(t, c.Database(t))
	if err := database.Migrate(t.Context(), through); err != nil {
		t.Fatal(err)
	}
	if err := database.Migrate(t.Context(), through); err != nil {
		t.Errorf("migrate again: %v", err)
	}
	owners := openURL(t, through, postgres.Options{Lease: time.Minute})
	readers := openURL(t, through, postgres.Options{})
	t.Run("behaviour", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journaltest.Backend {
			return journaltest.Backend{
				Own: func(ctx context.Context) (journal.Owner, error) {
					return owners.Own(ctx, t.Name(), postgres.OwnOptions{By: "test"})
				},
				Open: func(ctx context.Context) (journal.Reader, error) { return readers.OpenReader(ctx, t.Name(), nil) },
			}
		})
	})
	t.Run("load", func(t *testing.T) {
		l := start(t, owners, 8)
		time.Sleep(time.Second)
		l.end(t, readers)
	})
}
