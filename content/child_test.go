package content

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

const childEnv = "CONTENT_TEST_CHILD"

// childMain is the program of child processes: it executes the lines of its input and answers each with one line.
func childMain() {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return
	}
	s, err := Open(dir)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx := context.Background()
	var b *Batch
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, rest, _ := strings.Cut(in.Text(), " ")
		answer := "done"
		switch word {
		case "begin":
			b, err = s.Begin(ctx)
		case "add":
			var h Hash
			h, err = b.Add([]byte(rest))
			answer = string(h)
		case "close":
			err = b.Close()
		case "has":
			answer = strconv.FormatBool(s.Has(Hash(rest)))
		case "keep":
			s.Keep()
		case "commit": // a manifest of one file, named, and nothing held after it
			if b, err = s.Begin(ctx); err == nil {
				var h Hash
				h, err = commitTo(b, map[string]string{"f": rest})
				if err == nil {
					err = b.Close()
				}
				if err == nil {
					err = s.SetName("child", h)
				}
				s.Settle()
				answer = string(h)
			}
		case "collect":
			var done Collected
			done, err = s.Collect(ctx, CollectOptions{})
			answer = fmt.Sprint(done.Kept, " ", done.Removed)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
	os.Exit(0)
}

type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start starts a child in a store; fail arms a failpoint in it.
func start(t testing.TB, s *Store, fail string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+s.dir, failpoint.Env+"="+fail, "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = os.Stderr
	c.in = fixture.Must[io.WriteCloser](t)(c.cmd.StdinPipe())
	c.out = bufio.NewScanner(fixture.Must[io.ReadCloser](t)(c.cmd.StdoutPipe()))
	fixture.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// say sends a line to the child and returns its answer; "" when it was killed.
func (c *child) say(line string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil || !c.out.Scan() {
		return ""
	}
	if answer := c.out.Text(); !strings.HasPrefix(answer, "error") {
		return answer
	}
	c.t.Fatalf("%s: %s", line, c.out.Text())
	return ""
}

// kill ends the child with SIGKILL.
func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}
