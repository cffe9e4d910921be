// Package pgtest starts private PostgreSQL servers for tests, from the programs that the machine has: a cluster in a
// temporary folder, on a port of its own, which is killed and removed with the test. It syncs for real, because what
// the tests kill must not be forgotten.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Programs finds the folder with the programs of PostgreSQL: ROOST_POSTGRES, else the newest of Debian's. It skips the
// test without any, and fails it when CI is set.
func Programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("ROOST_POSTGRES"); dir != "" {
		return dir
	}
	list, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	if len(list) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("no PostgreSQL is installed, and CI must test it")
		}
		t.Skip("no PostgreSQL is installed")
	}
	return slices.MaxFunc(list, func(a, b string) int { return version(a) - version(b) })
}

func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // another name is the oldest
	return n
}

// Cluster is one server.
type Cluster struct {
	Port int

	programs string
	dir      string
	user     *syscall.Credential // PostgreSQL refuses to run as root
	server   *exec.Cmd
	running  *os.File // a pipe whose other end all processes of the server hold
}

var shared struct {
	sync.Mutex
	cluster *Cluster
}

// Shared is one cluster for all tests of a program that leave it running. StopShared ends it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		shared.cluster = start(t)
	}
	return shared.cluster
}

// StopShared ends the shared cluster, if there is one. TestMain calls it after the tests.
func StopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		_ = shared.cluster.remove() // it is a folder for temporary files
	}
}

// Start makes a cluster of the test's own and starts it. Each of settings is a line of postgresql.conf.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := start(t, settings...)
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *Cluster) remove() error {
	c.Kill()
	return os.RemoveAll(filepath.Dir(c.dir))
}

func start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{programs: Programs(t)}
	dir, err := os.MkdirTemp("", "roost-pg-") // t.TempDir is not open to another user
	if err != nil {
		t.Fatal(err)
	}
	c.dir = filepath.Join(dir, "data")
	if err := c.owner(dir); err != nil {
		t.Fatal(err)
	}
	c.Port = freePort(t)
	if out, err := c.command(t.Context(), "initdb", "-D", c.dir, "-U", "roost", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	var conf bytes.Buffer
	fmt.Fprintf(&conf, "\nport = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\nshared_buffers = 64MB\n", c.Port)
	for _, s := range settings {
		fmt.Fprintln(&conf, s)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = conf.WriteTo(f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Run(t)
	return c
}

// owner gives dir to the user whom the server runs as, when that is not this one.
func (c *Cluster) owner(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	const nobody = 65534
	c.user = &syscall.Credential{Uid: nobody, Gid: nobody}
	return os.Chown(dir, nobody, nobody)
}

func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, program), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user, Setpgid: true}
	return cmd
}

// Run starts the server, again after Kill, and waits until it answers.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	c.server = c.command(context.Background(), "postgres", "-D", c.dir)
	log, err := os.OpenFile(c.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // a buffer would need a goroutine
	if err != nil {
		t.Fatal(err)
	}
	c.server.Stdout, c.server.Stderr = log, log
	running, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.server.ExtraFiles, c.running = []*os.File{held}, running
	if err := errors.Join(c.server.Start(), log.Close(), held.Close()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), c.URL("postgres"))
		if err == nil {
			_ = conn.Close(t.Context()) // it did what it was for
			return
		}
		if time.Now().After(end) {
			c.Kill()
			words, _ := os.ReadFile(c.dir + ".log") // without it the error stands alone
			t.Fatalf("the server does not answer: %v\n%s", err, words)
		}
	}
}

// Kill ends the server and all its processes at once, as a crash does, and returns when none is left.
func (c *Cluster) Kill() {
	if c.server == nil {
		return
	}
	pid := c.server.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP) // so that it starts no process for one that was killed
	_ = c.signal(syscall.SIGKILL)
	_ = c.server.Wait()                   // it was killed
	_, _ = io.Copy(io.Discard, c.running) // it ends with the last process
	_ = c.running.Close()                 // nothing was written to it
	c.server, c.running = nil, nil
}

// signal sends a signal to all processes of the server: each of them has a process group of its own. The first one is the
// last, because the others are listed no more when it has ended.
func (c *Cluster) signal(s syscall.Signal) error {
	pid := c.server.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if n, no := strconv.Atoi(child); no == nil {
			_ = syscall.Kill(n, s) // it may have ended
		}
	}
	return errors.Join(err, syscall.Kill(pid, s))
}

// Signal sends a signal to all processes of the server: SIGSTOP and SIGCONT make it hang and go on.
func (c *Cluster) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.signal(s); err != nil {
		t.Fatal(err)
	}
}

// URL is the address of a database.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://roost@127.0.0.1:%d/%s?sslmode=disable", c.Port, database)
}

var databases atomic.Int64

// Database makes an empty database and returns its address.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	conn, err := pgx.Connect(t.Context(), c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // the statement has answered
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return c.URL(name)
}

// freePort returns a port without a listener.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it accepted nobody
	return l.Addr().(*net.TCPAddr).Port
}
