package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler starts pgbouncer in transaction mode in front of the server, and returns the address of a database behind it.
// It skips the test without pgbouncer. at is the address without it.
func (c *Cluster) Pooler(t testing.TB, at string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; exec.Command(program, "--version").Run() != nil {
			lacking(t, errors.New("no pgbouncer is installed"))
		}
	}
	port, err := freePort()
	must(t, err)
	dir := filepath.Dir(c.dir)
	config := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
* = host=127.0.0.1 port=%d user=roost
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
max_client_conn = 500
`, c.Port, port), 0o644))
	must(t, c.owner(config))
	log, err := os.Create(filepath.Join(dir, "pgbouncer.log"))
	must(t, err)
	cmd := c.command(context.Background(), "")
	cmd.Path, cmd.Args = program, []string{program, config}
	cmd.Stdout, cmd.Stderr, cmd.Err = log, log, nil
	must(t, errors.Join(cmd.Start(), log.Close()))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
	})
	u, err := url.Parse(at)
	must(t, err)
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			must(t, conn.Close(t.Context()))
			return u.String()
		}
		if time.Now().After(end) {
			words, _ := os.ReadFile(log.Name()) // without it the error stands alone
			t.Fatalf("pgbouncer does not answer: %v\n%s", err, words)
		}
	}
}
