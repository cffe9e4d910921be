package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	journals "github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/feed/feedtest"
	"github.com/roost-dev/roost/store/feed/postgres"
)

// childURL and the others make the test program write lines of a task, or with childOwn commits to its journal.
const (
	childURL   = "ROOST_FEED_TEST_URL"
	childTask  = "ROOST_FEED_TEST_WRITER"
	childLines = "ROOST_FEED_TEST_LINES"
	childOwn   = "ROOST_FEED_TEST_OWN"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := child(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

func child(url string) error {
	ctx := context.Background()
	s, err := openServer(ctx, url, journals.Options{Lease: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	defer s.close()
	if name := os.Getenv(childOwn); name != "" {
		return own(ctx, s, name)
	}
	return feedtest.Write(ctx, s.Feed, os.Getenv(childTask), os.Getenv(childLines))
}

// names are those of package store: tasks/ID, or adopted/SOURCE/ID.
type names struct{}

func (names) JournalOf(t feed.Task) (string, bool) {
	if t.Source == "roost" {
		return "tasks/" + t.ID, true
	}
	return "adopted/" + t.Source + "/" + t.ID, true
}

func (names) TaskOf(name string) (feed.Task, bool) {
	if id, ok := strings.CutPrefix(name, "tasks/"); ok {
		return feed.Task{Source: "roost", ID: id}, true
	}
	rest, ok := strings.CutPrefix(name, "adopted/")
	source, id, _ := strings.Cut(rest, "/")
	return feed.Task{Source: source, ID: id}, ok
}

// server is what one server has of a database.
type server struct {
	*postgres.Feed
	journals *journals.Journals
	db       *database.DB
}

func openServer(ctx context.Context, url string, opt journals.Options) (server, error) {
	db, err := database.Open(ctx, url)
	if err != nil {
		return server{}, err
	}
	j := journals.Open(ctx, db, opt)
	return server{postgres.New(j, names{}), j, db}, nil
}

func (s server) close() {
	s.journals.Close()
	s.db.Close()
}

// open is one more server of a database that has its tables.
func open(t testing.TB, url string) server {
	t.Helper()
	s, err := openServer(t.Context(), url, journals.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// migrated is the address of a database with tables.
func migrated(t testing.TB, c *pgtest.Cluster) string {
	t.Helper()
	url := c.Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	return url
}

func execute(t testing.TB, url, sql string) {
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
