package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// A task moves into a database with what its checkpoints keep, goes on there by a server, and moves back to the root that
// it came from, where all of it is undone.
func TestMigrateThereAndBack(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	file := filepath.Join(s.ws, "a.txt")
	must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	edit := func(text string) string {
		return call("read_file", `{path: a.txt}`) + call("write_to_file", `{path: a.txt, content: "`+text+`\n"}`) + finish("done")
	}
	if r := s.roost("run", "--yes", "--provider", "script", "-C", s.ws, "--model", s.script(edit("second")), "change it"); r.code != 0 {
		t.Fatalf("run: exit %d\n%s%s", r.code, r.out, r.err)
	}
	id := s.list()[0].ID
	url, key := pgtest.Shared(t).Database(t), filepath.Join(s.dir, "group.json")
	move := func(from, to string, flags ...string) (m api.Migration) {
		t.Helper()
		r := s.roost(append([]string{"migrate", "--json", "--from", from, "--to", to, "--store-key", key}, flags...)...)
		if err := json.Unmarshal([]byte(r.out), &m); r.code != 0 || err != nil {
			t.Fatalf("migrate: exit %d, %v\n%s%s", r.code, err, r.out, r.err)
		}
		return m
	}
	if r := s.roost("migrate", "--from", s.root, "--to", url, "--store-key", key, "--dry-run"); r.code != failure.ExitConfig ||
		!strings.Contains(r.err, "the same without --dry-run") {
		t.Errorf("a dry run into a database without tables: exit %d\n%s", r.code, r.err)
	}
	if m := move(s.root, url, "--trust"); m.Copied != 1 || m.Contents == 0 {
		t.Errorf("into the database: %+v, want one task with contents", m)
	}

	server := filepath.Join(s.dir, "server")
	d := s.daemon("--root", server, "--cache", filepath.Join(server, "cache"), "--store", url, "--store-key", key)
	s.env("ROOST_TOKEN=" + d.token)
	if r := s.roost("resume", id, "again", "--yes", "--server", d.url); r.code == 0 || !strings.Contains(r.err, "or was migrated") {
		t.Errorf("continue it before anybody said where its folder is: exit %d\n%s", r.code, r.err)
	}
	r := s.roost("resume", id, "again", "-C", s.ws, "--yes", "--provider", "script", "--model", s.script(edit("second")+edit("third")), "--server", d.url)
	if r.code != 0 {
		t.Fatalf("continue the task in the database: exit %d\n%s%s\n%s", r.code, r.out, r.err, d.log)
	}
	s.within(time.Minute, "the task changes the file", func() bool {
		data, err := os.ReadFile(file)
		return err == nil && string(data) == "third\n" && d.status(id) == "completed"
	})
	if r := s.roost("migrate", "--from", s.root, "--to", url, "--store-key", key); r.code != 0 {
		t.Errorf("again, over a task that went on: exit %d\n%s", r.code, r.err)
	}
	must(t, d.cmd.Process.Signal(os.Interrupt))
	d.exits(failure.ExitInterrupt)

	if m := move(url, s.root); m.Extended != 1 || m.Copied != 0 {
		t.Errorf("back: %+v, want one task that grew", m)
	}
	if r := s.roost("root", "trust"); r.code != 0 {
		t.Errorf("trust: exit %d\n%s", r.code, r.err)
	}
	if r := s.roost("rewind", id, "--to", "#1", "--files", "--yes"); r.code != 0 {
		t.Errorf("rewind: exit %d\n%s%s", r.code, r.out, r.err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "first\n" {
		t.Errorf("the file holds %q, %v; want what it held before both runs", data, err)
	}
	if r := s.roost("doctor"); strings.Contains(r.out, "damaged:") || strings.Contains(r.out, "lost") {
		t.Errorf("doctor after all of it:\n%s%s", r.out, r.err)
	}
}

// Wrong ends of a migration are refused with what to do.
func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--from", s.root}, failure.ExitUsage, "--from and --to are needed"},
		{[]string{"--from", s.root, "--to", s.ws}, failure.ExitUsage, "roost import"},
		{[]string{"--from", filepath.Join(s.dir, "none"), "--to", "postgres://127.0.0.1:1/none"}, failure.ExitUsage, "no such file"},
		{[]string{"--from", s.dir, "--to", "postgres://u:secret@127.0.0.1:1/none"}, failure.ExitConfig, "open the database"},
	} {
		r := s.roost(append([]string{"migrate"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) || strings.Contains(r.err, "secret") {
			t.Errorf("%q: exit %d, want %d with %q and no password\n%s", c.args, r.code, c.code, c.want, r.err)
		}
	}
}
