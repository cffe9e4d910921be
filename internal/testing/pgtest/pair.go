package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// StartPair makes a primary and a standby that follows it: a commit is acknowledged when the standby has synced it, too.
// Each of settings is a line of the postgresql.conf of both.
func StartPair(t testing.TB, settings ...string) (primary, standby *Cluster) {
	t.Helper()
	primary = prepare(t, append(settings, "wal_keep_size = 1GB")...)
	primary.removeAfter(t)
	standby = &Cluster{programs: primary.programs}
	must(t, standby.place())
	standby.removeAfter(t)
	must(t, standby.copyFrom(t.Context(), primary.dir)) // not every set of programs has pg_basebackup
	must(t, primary.set("synchronous_standby_names = '*'"))
	must(t, standby.set(fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=roost'", primary.Port)))
	signal := filepath.Join(standby.dir, "standby.signal")
	must(t, errors.Join(os.WriteFile(signal, nil, 0o600), standby.owner(signal)))
	primary.Run(t)
	standby.Run(t)
	return primary, standby
}

// Either is the address of a database on two servers. at is its address on the first one.
func Either(t testing.TB, at string, second *Cluster) string {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	u.Host += fmt.Sprintf(",127.0.0.1:%d", second.Port)
	return u.String()
}

// On is the address of the same database on this server.
func (c *Cluster) On(t testing.TB, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	u.Host = fmt.Sprintf("127.0.0.1:%d", c.Port)
	return u.String()
}

// CutOff ends what the server sends to its standby, as a network does that breaks right before the server is lost.
func (c *Cluster) CutOff(t testing.TB) {
	t.Helper()
	_, children, err := c.processes()
	must(t, err)
	found := false
	for _, pid := range children {
		title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if strings.Contains(string(title), "walsender") {
			found = true
			must(t, syscall.Kill(pid, syscall.SIGSTOP))
		}
	}
	if !found {
		t.Fatal("no process sends to a standby")
	}
}

// Promote makes a standby a primary, and returns when it takes writes.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL("postgres"))
	must(t, err)
	var done bool
	err = conn.QueryRow(t.Context(), `SELECT pg_promote()`).Scan(&done)
	must(t, errors.Join(err, conn.Close(t.Context())))
	if !done {
		t.Fatal("the standby was not promoted")
	}
}
