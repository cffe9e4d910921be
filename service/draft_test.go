package service

import (
	"testing"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/store/drafts"
)

// The database takes the name of a draft of a person: accounts are in a database, and so are the drafts there.
func TestADraftOfAPersonIsInTheDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	defer db.Close()
	ctx := accounts.With(t.Context(), accounts.Caller{Account: "p-1"})
	name := fixture.Must[string](t)((&Service{}).draftOf(ctx, ""))
	fixture.Must[api.Draft](t)(drafts.InDatabase(db).Change(ctx, api.Draft{Task: name, Text: "paint"}, "", nil))
	got := fixture.Must[api.Draft](t)(draftShown(drafts.InDatabase(db).Read(ctx, name)))
	if got.Task != "" || got.Text != "paint" {
		t.Errorf("got %q of task %q, want paint of no task", got.Text, got.Task)
	}
}
