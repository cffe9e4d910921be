package pagetest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait of a test: a machine under load is slow.
const patience = 20 * time.Second

// program is the path of the program under test, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pagetest")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "roost")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, "./cmd/roost")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return file, nil
})

// house is a running server with the folders that it works in.
type house struct {
	*testing.T
	root   string
	work   string // the workspace of its tasks
	relay  *relay
	token  string
	login  string // the path of the log-in link
	listen string
	lan    struct{ url, login string }
	around
	cmd *exec.Cmd
}

// around is what a server meets beside its root.
type around struct {
	other string   // a storage of another tool; "" = none
	flags []string // of the server
	env   []string // beside what every house has
}

// newHouse starts a server in an empty root.
func newHouse(t *testing.T) *house {
	t.Helper()
	return newHouseIn(t, around{})
}

// newHouseIn starts a server in an empty root, with what is around it.
func newHouseIn(t *testing.T, in around) *house {
	t.Helper()
	h := &house{T: t, root: filepath.Join(t.TempDir(), "root"), work: t.TempDir(), listen: "127.0.0.1:0", around: in}
	h.start()
	h.relay = newRelay(t, h.listen)
	t.Cleanup(func() {
		if h.cmd != nil {
			_ = h.cmd.Process.Signal(os.Interrupt)
			_ = h.cmd.Wait()
		}
	})
	return h
}

// start starts the server, at the address that it had before.
func (h *house) start() {
	h.Helper()
	file, err := program()
	if err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(file, append([]string{"serve", "--listen", h.listen, "--json", "--drain-timeout", "1s"}, h.flags...)...)
	cmd.Env = append(os.Environ(), "ROOST_ROOT="+h.root, "ROOST_SOURCES="+cmp.Or(h.other, "none"), "HOME="+filepath.Dir(h.root))
	cmd.Env = append(cmd.Env, h.env...)
	cmd.Dir = h.work
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.cmd = cmd
	var said struct {
		URL      string `json:"url"`
		Token    string `json:"token"`
		LoginURL string `json:"login_url"`
		LAN      struct{ URL string }
		LANLogin string `json:"lan_login_url"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if err != nil {
		h.Fatalf("the server said %q: %v\n%s", line, err, log.String())
	}
	h.token, h.listen = said.Token, strings.TrimPrefix(said.URL, "http://")
	h.login = strings.TrimPrefix(said.LoginURL, said.URL)
	h.lan.url, h.lan.login = said.LAN.URL, strings.TrimPrefix(said.LANLogin, said.LAN.URL)
}

// kill ends the server as a crash does.
func (h *house) kill() {
	h.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		h.Fatal(err)
	}
	_ = h.cmd.Wait() // it was killed
	h.cmd = nil
}

// base is the address of the server for a browser: in the local network where the server is open to it.
func (h *house) base() string {
	if h.lan.url != "" {
		return h.lan.url
	}
	return "http://" + h.relay.addr()
}

func (h *house) url(path string) string { return h.base() + path }

// ask sends a request of the API as a program does, and decodes the answer.
func (h *house) ask(method, path string, body, out any) {
	h.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			h.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(h.Context(), method, "http://"+h.listen+path, in)
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		h.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, data)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			h.Fatal(err)
		}
	}
}

type object = map[string]any

// script writes a script for the model, and gives what a new task that plays it needs.
func (h *house) script(text string) object {
	h.Helper()
	file := filepath.Join(h.TempDir(), "model.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
	return object{"workspace": h.work, "provider": "script", "model": file}
}

// task starts a task that plays a script, and gives its id.
func (h *house) task(script, words string, more object) string {
	h.Helper()
	body := h.script(script)
	body["message"] = object{"text": words}
	for k, v := range more {
		body[k] = v
	}
	var made struct{ ID string }
	h.ask("POST", "/v1/tasks", body, &made)
	return made.ID
}

// wait waits until a task has a status.
func (h *house) wait(task, status string) {
	h.Helper()
	var got struct{ Status string }
	h.until("the task is "+status, func() bool {
		h.ask("GET", "/v1/tasks/"+task, nil, &got)
		return got.Status == status
	})
}

// until waits for what no event tells the test.
func (h *house) until(what string, holds func() bool) {
	h.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("never came true: %s", what)
		}
	}
}

// relay passes connections on to a server, and can cut them.
type relay struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	broken   bool
	open     map[net.Conn]bool // true: what comes over it is lost
}

func newRelay(t *testing.T, target string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: target, open: map[net.Conn]bool{}}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { r.pass(in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		wait.Wait()
	})
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer out.Close()
	r.mu.Lock()
	broken := r.broken
	if !broken {
		r.open[in], r.open[out] = false, false
	}
	r.mu.Unlock()
	if broken {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(lossy{way[0], r}, way[1])
			_ = in.Close()
			_ = out.Close()
		})
	}
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, in)
	delete(r.open, out)
}

// lossy writes to a connection until that is stalled.
type lossy struct {
	net.Conn
	of *relay
}

func (l lossy) Write(p []byte) (int, error) {
	l.of.mu.Lock()
	stalled := l.of.open[l.Conn]
	l.of.mu.Unlock()
	if stalled {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

// stall loses what comes over the connections that are open from now on, and ends none of them: what a browser sees of a
// machine that is gone. New connections work.
func (r *relay) stall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		r.open[c] = true
	}
}

// cut ends all connections, and lets none through until mend.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
	for c := range r.open {
		_ = c.Close()
	}
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = false
}
