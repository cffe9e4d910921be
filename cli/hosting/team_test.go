package hosting

import (
	"context"
	"errors"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.StopShared()
	os.Exit(code)
}

// The commands of a team, from an empty database to a task that is shared, each over HTTP but the first.
func TestTeamCommands(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	address, token := "", ""
	run := func(args ...string) (string, error) {
		t.Helper()
		a, out, errs := clitest.New(t)
		env := a.Env
		a.Env = func(name string) string {
			if name == "ROOST_TOKEN" {
				return token
			}
			return env(name)
		}
		a.Flags.Server = address
		cmd := (&commands{a}).teamCommand()
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String() + errs.String(), err
	}
	does := func(want string, args ...string) string {
		t.Helper()
		got, err := run(args...)
		if err != nil || !strings.Contains(got, want) {
			t.Fatalf("roost team %s: got %q, %v, want %q", strings.Join(args, " "), got, err, want)
		}
		return got
	}
	token, _, _ = strings.Cut(does("roost_", "init", "ann", "--store", url), "\n")
	if _, err := run("init", "eve", "--store", url); !errors.Is(err, accounts.ErrBegun) {
		t.Errorf("init again: got %v, want ErrBegun", err)
	}
	at := fixture.Must[*neturl.URL](t)(neturl.Parse(url))
	at.Path = "/none"
	var refused *failure.Failure
	if _, err := run("init", "ann", "--store", at.String()); !errors.As(err, &refused) || !strings.Contains(refused.Try, "createdb") {
		t.Errorf("init in a database that is not there: got %v, want how to make it", err)
	}

	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	defer db.Close()
	people := accounts.New(db)
	defer people.Close()
	dir := t.TempDir()
	st := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "state")}))
	e := engine.New(st, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	defer e.Close(context.Background()) //nolint:errcheck // nothing runs
	srv := fixture.Must[*server.Server](t)(server.New(server.Options{Service: service.New(st, e, service.Options{}), Token: "x", Accounts: people}))
	web := httptest.NewServer(srv.Handler())
	defer srv.End()
	defer web.Close()
	address = web.URL

	does("added the person bob", "add", "bob")
	does("added the team red", "add", "red", "--group")
	does("bob is in red", "join", "red", "bob")
	does("red   team", "list")
	secret, _, _ := strings.Cut(does("roost_", "token", "bob", "laptop", "--scope", "read", "--life", "1h"), "\n")
	does("laptop", "tokens", "bob")
	ann := fixture.Must[accounts.Caller](t)(people.BySecret(t.Context(), token)).Account
	made := fixture.Must[*store.Task](t)(st.Create(t.Context(), task.Created{Task: "shed", Number: 1, CreatedAt: 1, Access: api.Access{Owner: ann}}))
	fixture.NoError(t, made.Close(t.Context()))
	sees := func(want bool) {
		t.Helper()
		c := fixture.Must[accounts.Caller](t)(people.BySecret(t.Context(), secret))
		_, err := service.New(st, e, service.Options{}).Find(service.As(t.Context(), c, accounts.Read), "shed")
		if (err == nil) != want {
			t.Errorf("bob finds the task: got %v, want %v", err, want)
		}
	}
	sees(false)
	does("red has the right read", "share", "shed", "red", "read")
	sees(true)
	does("red has the right none", "share", "shed", "red", "none")
	sees(false)
	does("/v1/tasks/{id}/access", "audit", "--by", "ann")
	does("is not in red", "leave", "red", "bob")
	does("revoked laptop", "revoke", "bob", "laptop")
	if _, err := people.BySecret(t.Context(), secret); !errors.Is(err, accounts.ErrToken) {
		t.Errorf("a revoked token: got %v, want ErrToken", err)
	}
	does("removed bob", "remove", "bob")
	for _, wrong := range [][]string{{"revoke", "ann", "first"}, {"remove", "nobody"}, {"share", "shed", "red", "dance"}, {"token", "ann", "x", "--scope", "own"}} {
		if got, err := run(wrong...); err == nil {
			t.Errorf("roost team %s: got %q and no error", strings.Join(wrong, " "), got)
		}
	}
}

// A search reads tasks while it holds a snapshot: with one connection each waited for 30 s, and found nothing.
func TestOneConnectionIsTooFew(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	a, _, _ := clitest.New(t)
	_, _, err := (&commands{a}).openDatabase(t.Context(), url+"&pool_max_conns=1", "")
	var f *failure.Failure
	if !errors.As(err, &f) || f.Exit != failure.ExitConfig || !strings.Contains(f.Try, "pool_max_conns") {
		t.Errorf("open with one connection: got %v, want a failure of the configuration about pool_max_conns", err)
	}
}
