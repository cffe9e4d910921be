//go:build linux

package shell

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// kept is a writer that may be read while it is written to.
type kept struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

func serve(t *testing.T, script string, errs *kept) *Child {
	t.Helper()
	c, err := Serve(Program{
		Path: "sh", Args: []string{"-c", script, "sh", "two words"}, Dir: t.TempDir(), Mark: NewMark(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "OWN=1"}, Stderr: errs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.End() })
	return c
}

func TestServeSpeaksBothWays(t *testing.T) {
	errs := &kept{}
	c := serve(t, `echo "started $1 $OWN $HOME" >&2; while read -r line; do echo "got $line"; done; echo bye >&2; exit 3`, errs)
	c.moment = time.Minute // it ends by itself, however busy the machine is
	r := bufio.NewReader(c.Out)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(c.In, word)
		if line, err := r.ReadString('\n'); err != nil || line != "got "+word+"\n" {
			t.Fatalf(`got %q, %v, want no error and line = "got "+word+"\n"`, line, err)
		}
	}
	if s := c.Status(); s != "" {
		t.Errorf("while it runs: %q", s)
	}
	if left := c.End(); left != nil {
		t.Errorf("left: %v", left)
	}
	if s := c.Status(); s != "it ended with exit code 3" {
		t.Errorf("it should have had its time to end: %q", s)
	}
	if got := errs.String(); got != "started two words 1 \nbye\n" {
		t.Errorf("stderr %q: nothing but what it was given is in its environment", got)
	}
	if left := c.End(); left != nil {
		t.Error("ending it again")
	}
}

// Whatever a server does, nothing of it is left: not when it ignores that its stdin
// ended, nor the signals, nor what it started in sessions of their own.
func TestServeEndsEverything(t *testing.T) {
	for name, script := range map[string]string{
		"deaf":        `trap "" TERM INT HUP; echo $$; while :; do sleep 0.05; done`,
		"has a child": `trap "" TERM; sleep 300 & echo $!; wait`,
		"daemon":      `setsid sleep 300 & echo $!; wait`,
		"orphan":      `sleep 300 & echo $!; exit 0`,
		"floods":      `echo $$; while :; do echo flood flood flood >&2; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, script, &kept{})
			line, err := bufio.NewReader(c.Out).ReadString('\n')
			pid, _ := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid == 0 {
				t.Fatalf("got %q, %v, want no error and pid != 0", line, err)
			}
			if left := c.End(); left != nil {
				t.Errorf("left: %v", left)
			}
			if s, ok := readStat(pid); ok && !s.dead() {
				t.Errorf("process %d lives: %+v", pid, s)
			}
		})
	}
}

// Programs that share a mark are found by it together, and end one by one.
func TestServeBesideAnother(t *testing.T) {
	start := func(mark string) *Child {
		c, err := Serve(Program{Path: "sleep", Args: []string{"300"}, Dir: t.TempDir(), Mark: mark})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.End() })
		return c
	}
	mark := NewMark()
	one, other := start(mark), start(mark)
	fixture.Eventually(t, "both are found", func() bool { return len(FindMarked(mark)) == 2 })
	one.End()
	if s := other.Status(); s != "" || len(FindMarked(mark)) != 1 {
		t.Errorf("the other one: %s", s)
	}
	if _, err := EndMarked(t.Context(), mark); err != nil {
		t.Error(err)
	}
	<-other.Done()
}

func TestServeThatCannotStart(t *testing.T) {
	for name, p := range map[string]Program{
		"no such program": {Path: "no-such-program-here", Dir: t.TempDir(), Mark: "m"},
		"no such folder":  {Path: "sh", Dir: "/no/such/folder", Mark: "m"},
		"a file":          {Path: "sh", Dir: "/dev/null", Mark: "m"},
		"no mark":         {Path: "sh", Dir: t.TempDir()},
	} {
		if c, err := Serve(p); err == nil || !strings.Contains(err.Error(), p.Path) {
			t.Errorf("%s: got %v, %v, want an error and strings.Contains(err.Error(), p.Path)", name, c, err)
		}
	}
}

// A parent that is killed takes a well-behaved server with it, although nobody had
// the time to end it, and what does not care is found by its mark.
func TestServeWhenTheParentIsKilled(t *testing.T) {
	if mark := os.Getenv("SHELL_TEST_SERVE"); mark != "" {
		for _, script := range []string{`echo $$; exec sleep 300`, `trap "" TERM; echo $$; while :; do sleep 0.05; done`} {
			c, err := Serve(Program{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Mark: mark, Env: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(c.Out).ReadString('\n')
			pid, _ := strconv.Atoi(strings.TrimSpace(line))
			b, _ := json.Marshal(pid)
			fmt.Println(string(b))
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	mark := NewMark()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SHELL_TEST_SERVE="+mark, "TMPDIR="+t.TempDir()) // the killed program leaves its folders
	out, _ := cmd.Output()
	pids := strings.Fields(string(out))
	if len(pids) != 2 {
		t.Fatalf("got %s, want len(pids) = 2", out)
	}
	polite, _ := strconv.Atoi(pids[0])
	fixture.Eventually(t, "the polite one is gone", func() bool { s, ok := readStat(polite); return !ok || s.dead() })
	if found, err := EndMarked(t.Context(), mark); err != nil || len(found) == 0 {
		t.Errorf("the deaf one: %v, %v", found, err)
	}
	if found := FindMarked(mark); found != nil {
		t.Errorf("left: %v", found)
	}
}

// What a program said last is there once Heard is closed, whoever ends it.
func TestServeHearsTheLastWords(t *testing.T) {
	for range 20 {
		errs := &kept{}
		c := serve(t, `echo "out of memory" >&2; exit 3`, errs)
		<-c.Drained()
		if got := errs.String(); got != "out of memory\n" {
			t.Fatalf("heard %q", got)
		}
	}
}
