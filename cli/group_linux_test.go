package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
)

func init() { afterTests = pgtest.StopShared }

// group is three servers that share a database. Each has a root and a cache of its own.
type group struct {
	*sandbox
	name    string
	url     string
	key     string
	servers []*daemon
}

func newGroup(t *testing.T, flags ...string) *group {
	t.Helper()
	s := newSandbox(t)
	s.slow()
	return s.group(pgtest.Shared(t).Database(t), flags...)
}

// group starts three servers of a database.
func (s *sandbox) group(url string, flags ...string) *group {
	s.t.Helper()
	g := &group{
		sandbox: s,
		name:    "server",
		url:     url,
		key:     filepath.Join(s.dir, "group.json"),
	}
	for range 3 {
		g.add(flags...)
	}
	return g
}

// add starts one more server.
func (g *group) add(flags ...string) *daemon {
	g.t.Helper()
	d := g.daemon(append(g.flags(g.key), flags...)...)
	g.servers = append(g.servers, d)
	return d
}

func (g *group) flags(key string) []string {
	root := filepath.Join(g.dir, fmt.Sprint(g.name, len(g.servers)))
	return []string{"--root", root, "--cache", filepath.Join(root, "cache"), "--store", g.url, "--store-key", key}
}

// ask makes a request to a server and decodes its answer.
func (d *daemon) ask(method, path, body string, into any) int {
	d.t.Helper()
	status, answer := d.request(method, path, body)
	if into != nil {
		must(d.t, json.Unmarshal(answer, into))
	}
	return status
}

// page is a page as a server shows it to a browser.
func (d *daemon) page(path string) string {
	d.t.Helper()
	_, body := d.request(http.MethodGet, path, "")
	return string(body)
}

func (d *daemon) request(method, path, body string) (status int, answer []byte) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	must(d.t, err)
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	must(d.t, err)
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	must(d.t, err)
	return resp.StatusCode, answer
}

// status is the status of a task, as a server shows it.
func (d *daemon) status(task string) string {
	d.t.Helper()
	var sum api.Summary
	d.ask(http.MethodGet, "/v1/tasks/"+task, "", &sum)
	return sum.Status
}

// starts begins a task on a server, which asks nothing.
func (d *daemon) starts(model, words string) string { return d.begins(model, words, "all") }

func (d *daemon) begins(model, words, approve string) string {
	d.t.Helper()
	body, err := json.Marshal(map[string]any{
		"message": map[string]string{"text": words}, "workspace": d.ws, "provider": "script", "model": model, "approve": approve,
	})
	must(d.t, err)
	var sum api.Summary
	if code := d.ask(http.MethodPost, "/v1/tasks", string(body), &sum); code != http.StatusCreated {
		d.t.Fatalf("start a task: got status %d", code)
	}
	return sum.ID
}

// events are the ids of the durable events of a task behind one, up to the first of a type.
func (d *daemon) events(task, after, until string) (ids []string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	err := d.follow(ctx, task, after, func(e seen) bool {
		ids = append(ids, e.id)
		return e.kind != until
	})
	if err != nil {
		d.t.Fatalf("the events of task %s end without %s: %v", task, until, err)
	}
	return ids
}

// seen is a durable event, as a client gets it.
type seen struct{ id, kind, data string }

// follow gives the durable events of a task behind one, as they come, until more has enough of them. The end of the stream
// is an error, and so is a server that does not know the event.
func (d *daemon) follow(ctx context.Context, task, after string, more func(seen) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/v1/tasks/"+task+"/events?after=0", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	if after != "" { // it wins
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for e := (seen{}); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind == "stream.snapshot" {
				return fmt.Errorf("%w: %s", errUnknownEvent, after)
			}
			if e.id != "" && e.kind != "" && !more(e) {
				return nil
			}
			e = seen{}
		}
	}
	return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

var errUnknownEvent = errors.New("the server does not know the event that the client saw last")

// command is a model that runs one command, which notes that it begins and ends. It ends with the test at the latest.
func (g *group) command() (model, notes, on string) {
	notes, on = filepath.Join(g.dir, "notes"), filepath.Join(g.dir, "on")
	return g.script(call("execute_command", `{command: "echo begin >> `+notes+`; while [ -d `+g.dir+` -a ! -e `+on+` ]; do sleep 0.02; done; echo end >> `+
		notes+`", cwd: null, timeout: null}`) + finish("worked")), notes, on
}

func (g *group) begun(notes string) {
	g.t.Helper()
	g.within(time.Minute, "the command begins", func() bool {
		data, err := os.ReadFile(notes)
		return err == nil && bytes.Contains(data, []byte("begin"))
	})
}

// Any server answers for a task that another one works on: it is listed, followed under the same ids, and what is sent
// reaches the run.
func TestGroupAnswersAnywhere(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b, c := g.servers[0], g.servers[1], g.servers[2]
	model, notes, on := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	for _, d := range g.servers {
		if got := d.status(id); got != "running" {
			t.Errorf("status by %s: got %q, want running", d.url, got)
		}
	}
	first := b.events(id, "", "tool.started")
	var sent struct{ Delivered string }
	if code := c.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":"also the gate"}`, &sent); code >= 300 || sent.Delivered != "queued" {
		t.Errorf("send by another server: got status %d, delivered %q, want it queued by the run", code, sent.Delivered)
	}
	must(t, os.WriteFile(on, nil, 0o600))
	g.within(time.Minute, "the task completes", func() bool { return c.status(id) == "completed" })
	want := a.events(id, "", "run.ended")
	for _, d := range []*daemon{b, c} {
		if got := d.events(id, "", "run.ended"); !slices.Equal(got, want) {
			t.Errorf("events by %s: got %q, want %q", d.url, got, want)
		}
	}
	// A client that moves sees no gap and no repeat.
	last := first[len(first)-1]
	if got := append(slices.Clone(first), c.events(id, last, "run.ended")...); !slices.Equal(got, want) {
		t.Errorf("events of a client that moves: got %q, want %q", got, want)
	}
}

// A server is killed in the middle of a command: another one takes the task over, and runs nothing twice.
func TestGroupTakesOver(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*daemon) (back func()){
		"killed": func(d *daemon) func() {
			_ = d.cmd.Process.Kill()
			<-d.ended
			return func() {}
		},
		"stopped for longer than its lease": func(d *daemon) func() {
			_ = d.cmd.Process.Signal(syscall.SIGSTOP)
			return func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			a, b, c := g.servers[0], g.servers[1], g.servers[2]
			model, notes, on := g.command()
			id := a.starts(model, "work")
			g.begun(notes)
			held, _ := g.read(id)
			lost := held[len(held)-1].Epoch
			back := lose(a)
			// The kernel takes connections for a server that is stopped. Whoever asks another server gets an answer all the same.
			if code := b.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":""}`, nil); code != http.StatusUnprocessableEntity {
				t.Errorf("an empty message by another server: got status %d, want 422", code)
			}
			g.within(time.Minute, "another server completes the task", func() bool { return b.status(id) == "completed" })
			_, whole := g.read(id)
			back()
			must(t, os.WriteFile(on, nil, 0o600)) // the command of the lost server may end now
			if got := strings.Count(b.log.String(), "run started") + strings.Count(c.log.String(), "run started"); got != 1 {
				t.Errorf("servers that continued the task: got %d, want 1", got)
			}
			data, err := os.ReadFile(notes)
			must(t, err)
			if got := strings.Count(string(data), "begin"); got != 1 {
				t.Errorf("the command ran %d times, want once", got)
			}
			want := b.events(id, "", "run.ended")
			if got := c.events(id, "", "run.ended"); !slices.Equal(got, want) {
				t.Errorf("events of the third server: got %q, want %q", got, want)
			}
			if name != "killed" {
				g.within(time.Minute, "the lost server answers again", func() bool { return a.status(id) == "completed" })
				if got := a.events(id, "", "run.ended"); !slices.Equal(got, want) {
					t.Errorf("events of the server that was stopped: got %q, want %q", got, want)
				}
				g.within(time.Minute, "the lost server gives its run up", func() bool {
					var now api.Server
					a.ask(http.MethodGet, "/v1/server", "", &now)
					return now.Runs == api.Load{}
				})
			}
			commits, sums := g.read(id, whole[0].Head)
			if sums[0] != whole[0] {
				t.Errorf("the journal up to commit %d: got sum %x, want %x as before the lost server woke up", whole[0].Head, sums[0].Hash, whole[0].Hash)
			}
			successor := slices.IndexFunc(commits, func(c journal.Commit) bool { return c.Epoch > lost })
			if successor < 0 {
				t.Fatalf("no commit is of a later epoch than %d, want one of the successor", lost)
			}
			for _, c := range commits[successor:] {
				if c.Epoch <= lost {
					t.Errorf("commit %d behind the successor's first one, %d: got epoch %d, want a later one than %d", c.Seq, commits[successor].Seq, c.Epoch, lost)
				}
			}
		})
	}
}

// A server is stopped for an upgrade while a run works. The others answer meanwhile, and start new tasks; the run, which
// had no time to finish, goes on when the server is back, and no command runs twice.
func TestGroupIsUpgraded(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
	b := g.add()
	flags := append(g.flags(g.key), "--auto-resume", "--drain-timeout", "100ms")
	a := g.daemon(flags...)
	model, notes, on := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	must(t, a.cmd.Process.Signal(syscall.SIGTERM))
	a.exits(failure.ExitTerminated)
	if got := b.status(id); got != "interrupted" {
		t.Errorf("status while the server is away: got %q, want interrupted", got)
	}
	other := b.starts(g.script(finish("painted")), "another task")
	g.within(time.Minute, "a task that begins meanwhile completes", func() bool { return b.status(other) == "completed" })
	a = g.daemon(flags...)
	g.within(time.Minute, "the run goes on", func() bool { return b.status(id) == "completed" })
	must(t, os.WriteFile(on, nil, 0o600))
	data, err := os.ReadFile(notes)
	must(t, err)
	if got := strings.Count(string(data), "begin"); got != 1 {
		t.Errorf("the command ran %d times, want once", got)
	}
	if !slices.Equal(a.events(id, "", "run.ended"), b.events(id, "", "run.ended")) {
		t.Error("the servers have different events of the task")
	}
}

// Only a server that reaches the workspace takes a task over.
func TestGroupNeedsTheWorkspace(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b, c := g.servers[0], g.servers[1], g.servers[2]
	model, notes, _ := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	must(t, os.Rename(g.ws, g.ws+".away"))
	_ = a.cmd.Process.Kill()
	<-a.ended
	g.within(time.Minute, "the other servers notice", func() bool {
		return strings.Contains(b.log.String(), "taking over") && strings.Contains(c.log.String(), "taking over")
	})
	if got := b.status(id); got != "interrupted" {
		t.Errorf("status without the workspace: got %q, want interrupted", got)
	}
	if strings.Contains(b.log.String()+c.log.String(), "run started") {
		t.Error("a server without the workspace continued the task")
	}
	must(t, os.Rename(g.ws+".away", g.ws))
	g.within(time.Minute, "a server completes the task", func() bool { return c.status(id) == "completed" })
}

// A task in a shared folder is continued only by a server that has this folder, at its own path of it. Without one the task
// is interrupted and names the folder, until a server announces it.
func TestGroupSharesAFolder(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	shared, mount, other := filepath.Join(g.dir, "shared"), filepath.Join(g.dir, "mount"), filepath.Join(g.dir, "other")
	must(t, os.Mkdir(shared, 0o755))
	must(t, os.Rename(g.ws, filepath.Join(shared, "project")))
	must(t, os.MkdirAll(filepath.Join(other, "project"), 0o755))
	g.ws = filepath.Join(shared, "project")
	must(t, os.WriteFile(filepath.Join(g.ws, "kept.txt"), []byte("before"), 0o600))
	c := g.servers[2] // without a shared folder
	a := g.add("--workspace", "work="+shared)
	d := g.add("--workspace", "work="+other) // another folder of that name

	notes, on := filepath.Join(g.dir, "notes"), filepath.Join(g.dir, "on")
	id := a.starts(g.script(call("write_to_file", `{path: kept.txt, content: "after\n"}`)+
		call("execute_command", `{command: "echo begin >> `+notes+`; while [ -d `+g.dir+` -a ! -e `+on+` ]; do sleep 0.02; done", cwd: null, timeout: null}`)+
		call("write_to_file", `{path: second.txt, content: "b\n"}`)+finish("worked")), "work")
	g.begun(notes)
	_ = a.cmd.Process.Kill()
	<-a.ended
	g.within(time.Minute, "servers notice what they lack", func() bool {
		return strings.Contains(c.log.String(), "the shared folder work, which this server does not have") &&
			strings.Contains(d.log.String(), "is another folder")
	})
	g.within(time.Minute, "the task names the folder", func() bool {
		var sum api.Summary
		c.ask(http.MethodGet, "/v1/tasks/"+id, "", &sum)
		return sum.Status == "interrupted" && sum.Unreached == "no server that runs has the shared folder work"
	})
	var refused api.Problem
	if code := c.ask(http.MethodPost, "/v1/tasks/"+id+"/runs", `{"message":{"text":"go on"}}`, &refused); code != http.StatusUnprocessableEntity ||
		refused.Code != "workspace_missing" || !strings.Contains(refused.Detail, "the shared folder work") {
		t.Errorf("a run on a server without the folder: got status %d, %+v, want it refused", code, refused)
	}
	must(t, os.Rename(shared, mount)) // the next server has it at another path
	g.ws = filepath.Join(mount, "project")
	g.env("ROOST_TOKEN=" + c.token)
	r := g.roost("checkpoint", "restore", id, "c1", "--yes", "--server", c.url)
	if r.code == 0 || !strings.Contains(r.out+r.err, "the shared folder work") {
		t.Errorf("restore by a server without the folder: got exit %d: %s%s, want it refused", r.code, r.out, r.err)
	}
	r = g.roost("show", id, "--server", c.url)
	if !strings.Contains(r.out, "no server continues it: no server that runs has the shared folder work") {
		t.Errorf("show: got %s%s, want the folder named", r.out, r.err)
	}
	b := g.add("--workspace", "work="+mount)
	g.within(time.Minute, "the server that has the folder completes the task", func() bool { return b.status(id) == "completed" })
	must(t, os.WriteFile(on, nil, 0o600))
	if strings.Contains(c.log.String()+d.log.String(), "run started") {
		t.Error("a server without the folder continued the task")
	}
	var sum api.Summary
	b.ask(http.MethodGet, "/v1/tasks/"+id, "", &sum)
	if sum.Workspace != g.ws {
		t.Errorf("workspace: got %s, want %s", sum.Workspace, g.ws)
	}
	if _, err := os.Stat(filepath.Join(other, "project", "second.txt")); err == nil {
		t.Error("the task worked in the folder of another server")
	}
	// What the first server kept, the second one restores.
	if r := g.roost("checkpoint", "restore", id, "c1", "--yes", "--server", b.url); r.code != 0 {
		t.Errorf("restore: exit %d: %s%s", r.code, r.out, r.err)
	}
	if got, err := os.ReadFile(filepath.Join(g.ws, "kept.txt")); err != nil || string(got) != "before" {
		t.Errorf("the restored file: got %q %v, want what it held before", got, err)
	}
	// What the third server cannot do, it passes on.
	var diff api.Diff
	if code := c.ask(http.MethodGet, "/v1/tasks/"+id+"/checkpoints/c2/diff?to=now", "", &diff); code != http.StatusOK || len(diff.Files) == 0 {
		t.Errorf("a comparison through a server without the folder: got status %d and %d files, want what the other one finds", code, len(diff.Files))
	}
	if body := c.page("/tasks/" + id + "/changes"); !strings.Contains(body, "second.txt") {
		t.Errorf("the page of the changes through a server without the folder: got %d bytes without second.txt, want what the other one shows", len(body))
	}
	var sent struct{ Delivered string }
	if code := c.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":"and now"}`, &sent); code >= 300 || sent.Delivered != "started" {
		t.Errorf("a message through a server without the folder: got status %d, delivered %q, want a run", code, sent.Delivered)
	}
	g.within(time.Minute, "the server that has the folder begins the run", func() bool {
		return strings.Count(b.log.String(), "run started") == 2
	})
	if strings.Contains(c.log.String()+d.log.String(), "run started") {
		t.Error("a server without the folder began the run")
	}
	if r := g.roost("server", "status", "--server", c.url); !strings.Contains(r.out, "shares work at "+mount) || !strings.Contains(r.out, c.url) {
		t.Errorf("the servers of the group: got %s%s, want the folder of the second one", r.out, r.err)
	}
}

// What works on folders of tasks is refused for tasks in a database, and makes none.
func TestGroupHasNoFolders(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := g.servers[0]
	id := a.starts(g.script(finish("done")), "work")
	g.within(time.Minute, "the task completes", func() bool { return a.status(id) == "completed" })
	old := filepath.Join(g.dir, "old")
	must(t, os.MkdirAll(old, 0o700))
	must(t, os.WriteFile(filepath.Join(old, "ui_messages.json"), []byte(`[{"ts":1776200000000,"type":"say","say":"text","text":"print the list"}]`), 0o600))
	g.env("ROOST_TOKEN=" + a.token)
	for _, args := range [][]string{
		{"import", old},
		{"export", id, "--format", "archive", "-o", filepath.Join(g.dir, "archive")},
	} {
		if r := g.roost(append(args, "--server", a.url)...); r.code == 0 || !strings.Contains(r.err, "tasks in a database have no folder") {
			t.Errorf("%q: got exit %d: %s%s, want it refused", args, r.code, r.out, r.err)
		}
	}
	if r := g.roost("export", id, "--format", "roo", "-o", filepath.Join(g.dir, "roo"), "--server", a.url); r.code != 0 {
		t.Errorf("export in Roo's format: exit %d: %s", r.code, r.err)
	}
	if r := g.roost("doctor", "--server", a.url); r.code != 0 || !strings.Contains(r.out+r.err, "1 whole, 0 damaged") || strings.Contains(r.out+r.err, "rebuild") {
		t.Errorf("doctor: got exit %d: %s%s, want one whole task and nothing to rebuild", r.code, r.out, r.err)
	}
	for _, dir := range []string{g.ws, filepath.Join(g.dir, "server0")} { // the server works in g.ws
		must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && (strings.Contains(d.Name(), "postgres:") || d.Name() == "tasks") {
				t.Errorf("%s was made", path)
			}
			return err
		}))
	}
}

// A request of a person with a key takes effect once, whichever servers it comes through.
func TestGroupDoesARequestOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a, b := g.servers[0], g.servers[1]
	r := g.roost("team", "init", "ann", "--store", g.url, "--json")
	var first struct{ Secret, Token string }
	if err := json.Unmarshal([]byte(r.out), &first); err != nil || r.code != 0 {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	for _, d := range g.servers {
		d.token = first.Secret
	}
	model, notes, on := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	var ids []string
	for _, d := range []*daemon{b, a, b} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/v1/tasks/"+id+"/messages", strings.NewReader(`{"text":"also the gate"}`))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+d.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "one")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		var sent struct{ Input string }
		must(t, json.NewDecoder(resp.Body).Decode(&sent))
		must(t, resp.Body.Close())
		ids = append(ids, sent.Input)
	}
	if ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] {
		t.Errorf("inputs of one request through two servers: got %q, want one", ids)
	}
	must(t, os.WriteFile(on, nil, 0o600))
	g.within(time.Minute, "the task completes", func() bool { return b.status(id) == "completed" })
}

// A server that cannot be one of the group is refused, changes nothing, and says what to do.
func TestGroupRefuses(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	cluster := pgtest.Start(t)
	g := &group{sandbox: s, name: "server", url: cluster.Database(t), key: filepath.Join(s.dir, "group.json")}
	g.add()
	other := &group{sandbox: s, name: "other", url: cluster.Database(t), key: filepath.Join(s.dir, "other.json")}
	other.add()
	open := filepath.Join(s.dir, "open.json")
	data, err := os.ReadFile(g.key)
	must(t, errors.Join(err, os.WriteFile(open, data, 0o600), os.Chmod(open, 0o644)))
	// From now on ann needs a password and bob may do nothing. Who is connected stays.
	conn, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the cluster ends with the test
	var hba string
	must(t, conn.QueryRow(t.Context(), `SHOW hba_file`).Scan(&hba))
	for _, sql := range []string{
		`CREATE ROLE ann LOGIN PASSWORD 'right'`, `CREATE ROLE bob LOGIN`, `CREATE DATABASE empty`, `CREATE DATABASE newer`,
		`COPY (VALUES ('host all ann 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')) TO '` + hba + `'`,
		`SELECT pg_reload_conf()`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		must(t, err)
	}
	newer, err := pgx.Connect(t.Context(), cluster.URL("newer"))
	must(t, err)
	_, err = newer.Exec(t.Context(), `CREATE SCHEMA roost; CREATE TABLE roost.schema_version AS SELECT 1000::bigint AS version`)
	must(t, errors.Join(err, newer.Close(t.Context())))
	as := func(user, url string) []string {
		return []string{"--store", strings.Replace(url, "roost@", user+"@", 1)}
	}
	for name, try := range map[string]struct {
		key   string
		flags []string
		code  int
		want  string // the reason
		next  string // what to do
	}{
		"another key":        {other.key, nil, failure.ExitConfig, "another key", "copying it from a server of the group"},
		"no key":             {filepath.Join(s.dir, "none.json"), nil, failure.ExitConfig, "copy the file from a server of the group", "chmod 600"},
		"a key that is open": {open, nil, failure.ExitConfig, "its mode is 0644", "chmod 600 " + open},
		"takes no writes":    {g.key, []string{"--store", g.url + "&default_transaction_read_only=on"}, failure.ExitConfig, "takes no writes", "address of the primary"},
		"wrong password":     {g.key, as("ann:wrong", g.url), failure.ExitConfig, `authentication failed for user "ann"`, "PGPASSWORD"},
		"no such database":   {g.key, as("roost", cluster.URL("nowhere")), failure.ExitConfig, `database "nowhere" does not exist`, "createdb"},
		"no right":           {g.key, as("bob", cluster.URL("empty")), failure.ExitConfig, "lacks a right", "ALTER DATABASE"},
		"newer tables":       {g.key, as("roost", cluster.URL("newer")), failure.ExitConfig, "a newer program has changed the database", "roost version"},
		"nobody listens":     {g.key, []string{"--store", "postgres://roost@127.0.0.1:1/roost"}, failure.ExitConfig, "connection refused", "pg_isready"},
		"no address":         {g.key, []string{"--peer-url", "box"}, failure.ExitUsage, "scheme, host and port", "--peer-url https://"},
		"no TLS":             {g.key, []string{"--peer-url", "http://10.0.0.1:7878"}, failure.ExitUsage, "without TLS", "--peer-url https://"},
	} {
		flags := append([]string{"serve", "--listen", "127.0.0.1:0"}, g.flags(try.key)...)
		r := g.roost(append(flags, try.flags...)...)
		if r.code != try.code || !strings.Contains(r.err, try.want) || !strings.Contains(r.err, try.next) {
			t.Errorf("%s: got exit %d, %s, want %d, %q and %q", name, r.code, r.err, try.code, try.want, try.next)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "none.json")); err == nil {
		t.Error("a key was made for a database that has one")
	}
	if r := g.roost("serve", "--listen", "127.0.0.1:0", "--peer-url", "https://box"); r.code != failure.ExitUsage || !strings.Contains(r.err, "--store is missing") {
		t.Errorf("--peer-url without --store: got exit %d, %s, want %d", r.code, r.err, failure.ExitUsage)
	}
}

// A server that the others cannot reach warns of it. What is sent to its tasks through another one is refused, and names it.
func TestGroupIsNotReached(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
	b := g.add()
	a := g.daemon(append(g.flags(g.key), "--peer-url", "http://127.0.0.1:1")...)
	model, notes, on := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	var p api.Problem
	code := b.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":"also the gate"}`, &p)
	if code != http.StatusConflict || !strings.Contains(p.Detail, "held by roost serve") {
		t.Errorf("send through a server that cannot reach the other: got status %d, %q: %q", code, p.Title, p.Detail)
	}
	for _, want := range []string{`"WARN","msg":"not passed on"`, `"server":"http://127.0.0.1:1"`} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log of that server: got %s, want %s in it", b.log, want)
		}
	}
	if got := b.status(id); got != "running" {
		t.Errorf("status by the server that cannot reach the other: got %q, want running", got)
	}
	g.within(time.Minute, "the server warns that nobody reaches it", func() bool {
		return strings.Contains(a.log.String(), "the other servers cannot reach this one; set --peer-url")
	})
	if strings.Contains(b.log.String(), "cannot reach this one") {
		t.Errorf("a server that can be reached warns:\n%s", b.log)
	}
	must(t, os.WriteFile(on, nil, 0o600))
	g.within(time.Minute, "the task completes", func() bool { return b.status(id) == "completed" })
}
