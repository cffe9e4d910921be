//go:build unix

package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/server/presence"
)

// daemon is a roost serve as a process of its own.
type daemon struct {
	*sandbox
	cmd   *exec.Cmd
	url   string
	token string
	log   *safeBuffer
	ended chan struct{}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// slow leaves a test out where races are looked for: what it watches are programs of
// their own, one after the other, whose parts are tested for races where they are.
func (s *sandbox) slow() {
	s.t.Helper()
	if testing.Short() {
		s.t.Skip("it watches whole programs")
	}
}

// daemon starts a server and waits until it is ready.
func (s *sandbox) daemon(args ...string) *daemon {
	s.t.Helper()
	s.slow()
	d := &daemon{sandbox: s, log: &safeBuffer{}, ended: make(chan struct{})}
	var out safeBuffer
	d.cmd = s.command(append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	d.cmd.Stdout, d.cmd.Stderr = &out, d.log
	must(s.t, d.cmd.Start())
	go func() { _ = d.cmd.Wait(); close(d.ended) }()
	s.t.Cleanup(func() { _ = d.cmd.Process.Kill(); <-d.ended })
	s.within(time.Minute, "the server's first line", func() bool {
		var hello struct{ URL, Token string }
		line, _, ok := strings.Cut(out.String(), "\n")
		if !ok {
			return false
		}
		must(s.t, json.Unmarshal([]byte(line), &hello))
		d.url, d.token = hello.URL, hello.Token
		return true
	})
	return d
}

// exits waits for its end.
func (d *daemon) exits(code int) {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(time.Minute):
		d.t.Fatalf("the server does not end:\n%s", d.log)
	}
	if got := d.cmd.ProcessState.ExitCode(); got != code {
		d.t.Errorf("the server ends with %d, want %d:\n%s", got, code, d.log)
	}
}

// leaves a run to the root's server.
func (s *sandbox) leaves(model, words string, flags ...string) api.Run {
	s.t.Helper()
	r := s.roost(append([]string{"run", "--detach", "--json", "--provider", "script", "--model", model, "-C", s.ws, words}, flags...)...)
	var run api.Run
	if err := json.Unmarshal([]byte(r.out), &run); err != nil || r.code != 0 {
		s.t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	return run
}

// run is a run as the journals have it.
func (s *sandbox) runOf(task string) (run api.Run) {
	s.t.Helper()
	r := s.roost("runs", task, "--json")
	var got struct {
		Items []api.Run `json:"items"`
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Items) == 0 {
		s.t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	return got.Items[0]
}

func (s *sandbox) comes(task, state string) api.Run {
	s.t.Helper()
	var run api.Run
	s.within(time.Minute, "the run of "+task+" "+state, func() bool {
		run = s.runOf(task)
		return run.State == state
	})
	return run
}

// Acceptance 18: a server is replaced while one task works, one waits for a person and one
// is queued. Nothing is lost, and each goes on under its own run's name.
func TestUpgradeLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	on := filepath.Join(s.dir, "on")
	works := s.script(call("execute_command", `{command: "echo $$ > `+filepath.Join(s.dir, "pid")+`; while [ ! -e `+on+` ]; do sleep 0.02; done", cwd: null, timeout: null}`) + finish("worked"))
	asks := s.script(call("ask_followup_question", `{question: "Which?", follow_up: [{text: red}, {text: green}]}`) + finish("was told"))
	d := s.daemon("--max-runs", "1", "--drain-timeout", "200ms")
	waiting := s.leaves(asks, "ask me")
	s.comes(waiting.Task, "waiting")
	working := s.leaves(works, "work", "--approve", "all")
	pid := s.pid(filepath.Join(s.dir, "pid"))
	queued := s.leaves(s.script(finish("had its turn")), "then this")
	if queued.State != "queued" || queued.Position != 1 {
		t.Errorf("the third run: %+v", queued)
	}
	must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.exits(failure.ExitTerminated)
	s.gone(pid)
	if _, err := os.Stat(presence.File(s.root)); err == nil {
		t.Error("it still says where it is")
	}
	for _, want := range []struct{ task, run, state string }{{waiting.Task, waiting.ID, "waiting"}, {working.Task, working.ID, "interrupted"}, {queued.Task, queued.ID, "queued"}} {
		if got := s.runOf(want.task); got.ID != want.run || got.State != want.state {
			t.Errorf("between the servers run %s is %s, want %s %s", got.ID, got.State, want.run, want.state)
		}
	}
	must(t, os.WriteFile(on, nil, 0o600))
	s.daemon("--max-runs", "1")
	if got := s.comes(queued.Task, "completed"); got.ID != queued.ID {
		t.Errorf("the queued run goes on as %s, was %s", got.ID, queued.ID)
	}
	if r := s.roost("answer", waiting.Task, "green", "--server", s.url()); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if got := s.comes(waiting.Task, "completed"); got.ID != waiting.ID {
		t.Errorf("the answered run goes on as %s, was %s", got.ID, waiting.ID)
	}
	if r := s.roost("resume", "--detach", working.Task, "--yes"); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	s.comes(working.Task, "completed")
}

// url is where the root's server says it is.
func (s *sandbox) url() string {
	s.t.Helper()
	p, err := presence.Find(s.root)
	must(s.t, err)
	return p.URL
}

func TestServerStatusDrainStop(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, args := range [][]string{{"server", "status"}, {"server", "stop"}, {"run", "--detach", "--provider", "script", "--model", s.script(finish("x")), "-C", s.ws, "words"}} {
		if r := s.roost(args...); r.code != failure.ExitServer || !strings.Contains(r.err, "try: roost serve") {
			t.Errorf("%q without a server: exit %d\n%s", args, r.code, r.err)
		}
	}
	d := s.daemon()
	var got api.Server
	r := s.roost("server", "status", "--json")
	if must(t, json.Unmarshal([]byte(r.out), &got)); got.PID != d.cmd.Process.Pid || got.URL != d.url || got.Limits.MaxRuns != 8 {
		t.Errorf("got %+v, want got.PID = d.cmd.Process.Pid and got.URL = d.url and got.Limits.MaxRuns = 8", got)
	}
	if r := s.roost("serve", "--listen", "127.0.0.1:0"); r.code != failure.ExitBusy || !strings.Contains(r.err, d.url) {
		t.Errorf("a second server of the root: exit %d\n%s", r.code, r.err)
	}
	if r := s.roost("serve", "--listen", strings.TrimPrefix(d.url, "http://")); r.code != failure.ExitBusy || !strings.Contains(r.err, "server status") {
		t.Errorf("a second server at its address: exit %d\n%s", r.code, r.err)
	}
	if r := s.roost("serve", "--root", filepath.Join(s.dir, "other"), "--listen", strings.TrimPrefix(d.url, "http://")); r.code != failure.ExitBusy || !strings.Contains(r.err, "another program listens there") {
		t.Errorf("another root's server at its address: exit %d\n%s", r.code, r.err)
	}
	if r := s.roost("server", "drain", "--wait"); r.code != 0 || !strings.Contains(r.out, "starts no more runs") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.roost("run", "--detach", "--provider", "script", "--model", s.script(finish("x")), "-C", s.ws, "words"); r.code == 0 || len(s.list()) != 0 {
		t.Errorf("a run was taken while it drains: exit %d\n%s", r.code, r.err)
	}
	if r := s.roost("server", "drain", "--off"); r.code != 0 || strings.Contains(r.out, "starts no more") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.roost("server", "stop"); r.code != 0 || r.out != "stopped\n" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	d.exits(failure.ExitDone)
}

// What a kill leaves is not believed, and the next server starts: over and over.
func TestKilledServersAreFollowedByNewOnes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(finish("done"))
	tasks := map[string]string{}
	for range 3 {
		d := s.daemon()
		run := s.leaves(model, "words")
		tasks[run.Task] = run.ID
		must(t, d.cmd.Process.Kill())
		<-d.ended
		if _, err := os.Stat(presence.File(s.root)); err != nil {
			t.Error("the kill was no kill")
		}
		if r := s.roost("server", "status"); r.code != failure.ExitServer {
			t.Errorf("a dead server is believed: exit %d\n%s", r.code, r.out)
		}
	}
	s.daemon("--auto-resume")
	for task, run := range tasks {
		s.comes(task, "completed")
		r := s.roost("show", task, "--journal", "--json")
		if !strings.Contains(r.out, run) {
			t.Errorf("run %s, which was acknowledged, is not in its task's journal", run)
		}
	}
	if n := len(s.list()); n != 3 {
		t.Errorf("%d tasks of 3", n)
	}
}

// A first signal finishes what works; a second one ends at once, and what was acknowledged is there.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	d := s.daemon("--drain-timeout", "10m")
	run := s.leaves(s.script("- delay: 10m\n  text: a word\n"+finish("x")), "words")
	s.comes(run.Task, "running")
	must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	s.within(time.Minute, "the drain", func() bool { return strings.Contains(d.log.String(), "once more ends it at once") })
	s.within(time.Minute, "/readyz saying that it stops", func() bool { // it is told before it is done
		resp, err := http.Get(d.url + "/readyz")
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	time.Sleep(app.Bounce) // it is another signal
	must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.exits(failure.ExitTerminated)
	if got := s.runOf(run.Task); got.ID != run.ID || got.State != "interrupted" {
		t.Errorf("got %+v, want got.ID = run.ID and got.State = \"interrupted\"", got)
	}
	// And what is not to be finished is interrupted, saved.
	d = s.daemon("--drain-timeout", "10m")
	again := s.leaves(s.script("- delay: 10m\n  text: a word\n"+finish("x")), "words")
	s.comes(again.Task, "running")
	if r := s.roost("server", "stop", "--now"); r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	d.exits(failure.ExitDone)
	if got := s.runOf(again.Task); got.State != "interrupted" {
		t.Errorf("got %+v, want got.State = \"interrupted\"", got)
	}
}

// The programs of a server's user accept its certificate even if no authority signed it, because they can read the hash
// of the certificate in the root. Other programs refuse it.
func TestACertificateOfOnesOwn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	pair := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	cert, keyFile := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	srv := s.server("--tls-cert", cert, "--tls-key", keyFile)
	for _, args := range [][]string{{"server", "status"}, {"open", "--print"}, {"list", "--server", srv.url}, {"server", "stop"}} {
		s.exitsWith([]int{failure.ExitDone}, args...)
	}
	r := s.exitsWith([]int{failure.ExitServer}, "list", "--server", other.URL)
	if !strings.Contains(r.err, "certificate") || !strings.Contains(r.err, "try: roost help topics server") {
		t.Errorf("got %s, want an error about the certificate, and where it is told how it is trusted", r.err)
	}
}
