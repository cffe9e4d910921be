package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// git runs git in a folder, as a user does.
func (g *group) git(dir string, args ...string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %q in %s: %v: %s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

// files writes files below a folder.
func (g *group) files(dir string, texts map[string]string) {
	g.t.Helper()
	for name, text := range texts {
		must(g.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(g.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// holds compares files below a folder with what they should hold; "" = the file should be absent.
func (g *group) holds(dir string, want map[string]string) {
	g.t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if text == "" && os.IsNotExist(err) {
			continue
		}
		if err != nil || string(got) != text {
			g.t.Errorf("%s in the clone: got %q %v, want %q", name, got, err, text)
		}
	}
}

// The machine of a server is lost with a work tree that holds commits and changes which were never pushed. A server that
// may clone the remote makes the work tree again, and then a second one does.
func TestGroupClones(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
	remote := filepath.Join(g.dir, "git", "team", "app.git")
	must(t, os.MkdirAll(remote, 0o755))
	g.git(remote, "init", "-q", "--bare", "-b", "main")
	outside := g.ws
	g.ws = filepath.Join(g.dir, "work")
	g.git(g.dir, "clone", "-q", remote, g.ws)
	g.git(g.ws, "checkout", "-q", "-b", "main")
	g.files(g.ws, map[string]string{".gitignore": "*.secret\n", "README": "pushed\n", "kept.txt": "pushed\n", "gone.txt": "pushed\n", "src/own.txt": "pushed\n"})
	g.git(g.ws, "add", "-A")
	g.git(g.ws, "commit", "-q", "-m", "first")
	g.git(g.ws, "push", "-q", "-u", "origin", "main")
	pushed := g.git(g.ws, "rev-parse", "HEAD")
	g.files(g.ws, map[string]string{"src/own.txt": "committed here\n"})
	g.git(g.ws, "commit", "-qam", "never pushed")
	g.files(g.ws, map[string]string{"README": "changed\n", "new.txt": "untracked\n", "key.secret": "hidden\n"})
	must(t, os.Remove(filepath.Join(g.ws, "gone.txt")))

	clones := func(name, from string) []string {
		return []string{"--clone-after", "0", "--clone", filepath.Join(g.dir, "clones", name), "--clone-from", filepath.Join(g.dir, from) + "/"}
	}
	a := g.add(clones("a", "git/team")...)
	c := g.add()
	notes, on := filepath.Join(g.dir, "notes"), filepath.Join(g.dir, "on")
	id := a.starts(g.script(call("write_to_file", `{path: kept.txt, content: "by the task\n"}`)+
		call("execute_command", `{command: "echo made > made.txt", cwd: null, timeout: null}`)+
		call("execute_command", `{command: "echo begin >> `+notes+`; while [ -d `+g.dir+` -a ! -e `+on+` ]; do sleep 0.02; done", cwd: null, timeout: null}`)+
		call("write_to_file", `{path: second.txt, content: "by the second server\n"}`)+finish("worked")+finish("worked again")), "work")
	g.begun(notes)
	must(t, a.cmd.Process.Kill())
	<-a.ended
	must(t, os.Rename(g.ws, g.ws+".lost"))
	g.ws = outside
	must(t, os.WriteFile(on, nil, 0o600)) // the command of the lost machine ends

	other := g.add(clones("other", "git/elsewhere")...)
	g.within(time.Minute, "servers notice what they may not clone", func() bool {
		return strings.Contains(c.log.String(), "a folder of another server") &&
			strings.Contains(other.log.String(), "servers do not clone from "+remote)
	})
	b := g.add(clones("b", "git/team")...)
	g.within(time.Minute, "a server that may clone it completes the task", func() bool { return b.status(id) == "completed" })
	if strings.Contains(c.log.String()+other.log.String(), "run started") {
		t.Error("a server that may not clone the workspace continued the task")
	}
	var sum api.Summary
	b.ask(http.MethodGet, "/v1/tasks/"+id, "", &sum)
	clone := filepath.Join(g.dir, "clones", "b", id, "tree")
	if sum.Workspace != clone {
		t.Fatalf("workspace: got %s, want %s", sum.Workspace, clone)
	}
	want := map[string]string{
		"README": "changed\n", "new.txt": "untracked\n", "gone.txt": "", "src/own.txt": "committed here\n", "key.secret": "",
		"kept.txt": "by the task\n", "made.txt": "made\n", "second.txt": "by the second server\n",
	}
	g.holds(clone, want)
	if got := g.git(clone, "rev-parse", "HEAD"); got != pushed {
		t.Errorf("commit of the clone: got %s, want %s", got, pushed)
	}
	if got := g.git(clone, "status", "--short", "--branch"); !strings.HasPrefix(got, "## main...origin/main\n") {
		t.Errorf("branch of the clone: got %q, want main, which follows origin/main", got)
	}
	g.env("ROOST_TOKEN=" + c.token)
	r := g.roost("show", id, "--server", b.url)
	if !strings.Contains(r.out, "worked") {
		t.Errorf("show: got %s%s, want the task", r.out, r.err)
	}
	// What the lost server kept, the second one restores.
	if r := g.roost("checkpoint", "restore", id, "c1", "--yes", "--server", b.url); r.code != 0 {
		t.Errorf("restore: exit %d: %s%s", r.code, r.out, r.err)
	}
	want["kept.txt"], want["made.txt"], want["second.txt"] = "pushed\n", "", ""
	g.holds(clone, want)

	// A message through a server that cannot clone goes to one that can.
	must(t, b.cmd.Process.Kill())
	<-b.ended
	must(t, os.RemoveAll(filepath.Join(g.dir, "clones", "b")))
	var refused struct{ Code string }
	code := c.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":"too early"}`, &refused)
	var now api.Server
	c.ask(http.MethodGet, "/v1/server", "", &now)
	runs := slices.ContainsFunc(now.Group, func(s api.GroupServer) bool { return s.URL == b.url })
	if runs && (code != http.StatusServiceUnavailable || refused.Code != "workspace_unreachable") {
		t.Errorf("a message while the killed server counts as running: got status %d, %q, want 503, workspace_unreachable", code, refused.Code)
	}
	d := g.add(clones("d", "git/team")...)
	g.within(time.Minute, "the killed server counts as gone", func() bool {
		var now api.Server
		c.ask(http.MethodGet, "/v1/server", "", &now)
		return len(now.Group) == 3
	})
	var sent struct{ Delivered string }
	if code := c.ask(http.MethodPost, "/v1/tasks/"+id+"/messages", `{"text":"and now"}`, &sent); code >= 300 || sent.Delivered != "started" {
		t.Errorf("a message through a server that cannot clone: got status %d, delivered %q, want a run", code, sent.Delivered)
	}
	g.within(time.Minute, "the next server completes the run", func() bool {
		return strings.Contains(d.log.String(), "run ended") && d.status(id) == "completed"
	})
	g.holds(filepath.Join(g.dir, "clones", "d", id, "tree"), want)
	if r := g.roost("server", "status", "--server", c.url); !strings.Contains(r.out, "clones from "+filepath.Join(g.dir, "git", "team")) {
		t.Errorf("the servers of the group: got %s%s, want from where they clone", r.out, r.err)
	}
}

// pushed makes a remote, and a clone of it whose only commit is pushed, which becomes the workspace.
func (g *group) pushed() (remote string) {
	g.t.Helper()
	remote = filepath.Join(g.dir, "git", "team", "project")
	g.git(g.dir, "init", "-q", "--bare", "-b", "main", remote)
	g.ws = filepath.Join(g.dir, "work")
	g.git(g.dir, "clone", "-q", remote, g.ws)
	g.git(g.ws, "checkout", "-q", "-b", "main")
	g.files(g.ws, map[string]string{"README": "pushed\n"})
	g.git(g.ws, "add", "-A")
	g.git(g.ws, "commit", "-q", "-m", "first")
	g.git(g.ws, "push", "-q", "-u", "origin", "main")
	return remote
}

// What a server leaves in its queue is continued elsewhere too once its workspace may be cloned, which is later than the
// others notice that it ended.
func TestGroupClonesForAQueue(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
	outside := g.ws
	g.pushed()
	clones := func(name string) []string {
		return []string{"--max-runs", "1", "--clone-after", "3s", "--clone", filepath.Join(g.dir, "clones", name), "--clone-from", filepath.Join(g.dir, "git", "team") + "/"}
	}
	a, b := g.add(clones("a")...), g.add(clones("b")...)
	model, notes, on := g.command()
	first := a.starts(model, "work")
	g.begun(notes)
	second := a.starts(g.script(call("write_to_file", `{path: made.txt, content: "from the queue\n"}`)+finish("painted")), "wait in the queue")
	g.within(time.Minute, "the second task is in the queue", func() bool { return b.status(second) == "queued" })
	must(t, a.cmd.Process.Kill())
	<-a.ended
	must(t, os.Rename(g.ws, g.ws+".lost"))
	g.ws = outside
	must(t, os.WriteFile(on, nil, 0o600))
	g.within(time.Minute, "another server completes the task", func() bool { return b.status(first) == "completed" })
	g.within(time.Minute, "another server completes the task of the queue", func() bool { return b.status(second) == "completed" })
	g.holds(filepath.Join(g.dir, "clones", "b", second, "tree"), map[string]string{"made.txt": "from the queue\n"})
}

// A server is killed while it clones. It clones again when it starts, beside the git that outlived the kill. The folder of
// the first clone is no clone: it goes after an hour.
func TestGroupKilledWhileItClones(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
	outside := g.ws
	remote := g.pushed()
	g.git(g.ws, "remote", "set-url", "origin", "ssh://git.example.org"+remote)
	bin, begun, goOn := filepath.Join(g.dir, "bin"), filepath.Join(g.dir, "ssh-begun"), filepath.Join(g.dir, "ssh-go-on")
	must(t, os.Mkdir(bin, 0o700))
	must(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\necho >> "+begun+"\n"+
		"while [ -d "+g.dir+" -a ! -e "+goOn+" ]; do sleep 0.02; done\nfor command; do :; done\nexec sh -c \"$command\"\n"), 0o700))
	g.env("PATH=" + bin + ":" + os.Getenv("PATH"))
	clones := func(name string) []string {
		return append(g.flags(g.key), "--auto-resume", "--clone-after", "0", "--clone", filepath.Join(g.dir, "clones", name), "--clone-from", "ssh://git.example.org"+filepath.Dir(remote)+"/")
	}
	a := g.daemon(clones("a")...)
	g.servers = append(g.servers, a)
	model, notes, on := g.command()
	id := a.starts(model, "work")
	g.begun(notes)
	must(t, a.cmd.Process.Kill())
	<-a.ended
	must(t, os.Rename(g.ws, g.ws+".lost"))
	g.ws = outside
	must(t, os.WriteFile(on, nil, 0o600))

	flags := clones("b")
	b := g.daemon(flags...)
	sessions := func() int {
		text, _ := os.ReadFile(begun) // it may not exist yet
		return strings.Count(string(text), "\n")
	}
	g.within(time.Minute, "the server clones", func() bool { return sessions() == 1 })
	must(t, b.cmd.Process.Kill())
	<-b.ended
	b = g.daemon(flags...)
	g.within(time.Minute, "the server clones again", func() bool { return sessions() == 2 })
	must(t, os.WriteFile(goOn, nil, 0o600)) // both: the git of the killed server may have outlived it
	g.within(time.Minute, "the server completes the task", func() bool { return b.status(id) == "completed" })
	g.holds(filepath.Join(g.dir, "clones", "b", id, "tree"), map[string]string{"README": "pushed\n"})
	entries, err := os.ReadDir(filepath.Join(g.dir, "clones", "b"))
	must(t, err)
	for _, e := range entries {
		if e.Name() != id && !strings.HasPrefix(e.Name(), ".clone-") {
			t.Errorf("the folder of clones has %s beside the clone of the task", e.Name())
		}
	}
	text, err := os.ReadFile(notes)
	must(t, err)
	if got := strings.Count(string(text), "begin"); got != 1 {
		t.Errorf("the command ran %d times, want once", got)
	}
}
