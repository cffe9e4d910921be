package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// asDatabaseUser is the sudo of the machine on which the page is followed: sudo -u postgres COMMAND. PostgreSQL does not
// run as root; the test's cluster belongs to nobody there, else to this user.
const asDatabaseUser = `#!/bin/sh
[ "$1 $2" = "-u postgres" ] || exit 1
shift 2
[ "$(id -u)" = 0 ] || exec "$@"
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
`

// What docs/team.md tells an operator to type is typed, as TestPagesRun does with the other pages: from an empty database
// to a fail-over, with servers that are killed, stopped and restored. Ports and folders are those of this machine.
func TestTeamPageRuns(t *testing.T) {
	t.Parallel()
	s := &site{sandbox: newSandbox(t)}
	s.slow()
	text, err := os.ReadFile("../docs/team.md")
	must(t, err)
	settings := regexp.MustCompile("(?m)^```text\n(archive_mode = .*\narchive_command = .*\narchive_timeout = .*)\n```$").FindSubmatch(text)
	if settings == nil {
		t.Fatal("docs/team.md has no block with archive_mode and archive_command")
	}
	dir, err := os.MkdirTemp("", "roost-page-") // t.TempDir is not open to the database's user
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	wal, bin := filepath.Join(dir, "backups", "wal"), filepath.Join(dir, "bin")
	must(t, errors.Join(os.MkdirAll(wal, 0o755), os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "sudo"), []byte(asDatabaseUser), 0o755)))
	if os.Getuid() == 0 {
		for _, path := range []string{dir, filepath.Dir(wal), wal} {
			must(t, os.Chown(path, 65534, 65534))
		}
	}
	here := func(text string) string { return strings.ReplaceAll(text, "/var/backups/roost", filepath.Dir(wal)) }
	cluster := pgtest.Start(t, strings.Split(here(string(settings[1])), "\n")...)
	conn, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	must(t, err)
	var data, programs string
	must(t, conn.QueryRow(t.Context(), `SELECT current_setting('data_directory'), setting FROM pg_config() WHERE name = 'BINDIR'`).Scan(&data, &programs))
	must(t, conn.Close(t.Context()))

	script := here(session(string(text)))
	standby := filepath.Join(dir, "standby")
	replaced := []string{
		"/var/lib/postgresql/primary", data, "/var/lib/postgresql/standby", standby,
		"5432", fmt.Sprint(cluster.Port), "5433", s.port(), "5434", s.port(), "7878", s.port(), "7879", s.port(), "7880", s.port(),
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(script, replaced[i]) {
			t.Errorf("the page does not have %s any more", replaced[i])
		}
	}
	script = strings.NewReplacer(replaced...).Replace(script)
	t.Cleanup(func() { // what still works, when the page ends or fails
		for _, of := range []string{standby, filepath.Join(dir, "backups", "then")} {
			cmd := exec.Command(filepath.Join(bin, "sudo"), "-u", "postgres", filepath.Join(programs, "pg_ctl"), "-D", of, "-m", "immediate", "stop")
			_ = cmd.Run() // it may not have started
		}
	})
	cmd := pageShell(t, script, "PATH="+bin+":"+programs+":"+os.Getenv("PATH"),
		"PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", cluster.Port), "PGUSER=roost")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the servers; none may be left
	late := time.AfterFunc(5*time.Minute, end)
	succeeds(t, cmd)
	if late.Stop() {
		end()
	}
}
