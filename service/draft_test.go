package service

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/internal/testing/storetest"
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

// A message that is sent again after a kill gets its first result: its draft has gone with the first attempt, and the run
// that it began was the last one that may be restarted.
func TestAMessageWithADraftIsSentAgain(t *testing.T) {
	dir := t.TempDir()
	st := storetest.Open(t, filepath.Join(dir, "root"))
	e := engine.New(st, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	defer func() { fixture.NoError(t, e.Close(context.Background())) }()
	s := New(st, e, Options{Restart: Restart{MaxAttempts: 1}})
	storetest.Write(t, dir, "script.yaml", strings.Repeat("- {error: {status: 401, message: no}}\n", 3))
	first := fixture.Must[engine.Ticket](t)(e.Submit(t.Context(), engine.Request{Text: "go", Choice: setup.Choice{
		Workspace: t.TempDir(), Provider: "script", Model: filepath.Join(dir, "script.yaml"), Approve: "all"}}))
	ended := func(run string) {
		t.Helper()
		if got := fixture.Must[api.Run](t)(s.Settled(t.Context(), run, time.Minute, nil)); got.State != "failed" {
			t.Fatalf("got %+v, want it failed", got)
		}
		fixture.Must[bool](t)(e.WaitForRelease(t.Context(), first.Ref.ID))
	}
	ended(first.ID)
	image := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
	draft := fixture.Must[api.Draft](t)(s.ChangeDraft(t.Context(), first.Ref.ID, api.NewDraft{Images: []string{image}}))
	m := api.Message{Images: []string{draft.Images[0].Name}, Draft: draft.Revision}
	call := Call{Key: "0199aaaa-0000-8000-8000-0000000000d1"}
	sent := fixture.Must[api.Sent](t)(s.Send(t.Context(), call, first.Ref.ID, m))
	ended(sent.Run)
	call.Again = true
	again, err := s.Send(t.Context(), call, first.Ref.ID, m)
	if err != nil || again.Run != sent.Run || again.Input != sent.Input {
		t.Errorf("again: got %+v %v, want run %s and input %s", again, err, sent.Run, sent.Input)
	}
}
