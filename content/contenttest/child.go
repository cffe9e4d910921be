package contenttest

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

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Serve is the program of child processes: it executes the lines of its input and answers each with one line.
func Serve(s content.Store) {
	ctx := context.Background()
	var b content.Batch
	var err error
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, rest, _ := strings.Cut(in.Text(), " ")
		answer := "done"
		var h content.Hash
		switch word {
		case "begin":
			b, err = s.Begin(ctx)
		case "add":
			h, err = b.Add([]byte(rest))
			answer = string(h)
		case "close":
			err = b.Close()
		case "has":
			answer = strconv.FormatBool(s.Has(ctx, content.Hash(rest)))
		case "keep":
			s.Keep()
		case "commit": // a manifest of one file, named, and nothing held after it
			if b, err = s.Begin(ctx); err == nil {
				h, err = commitTo(b, map[string]string{"f": rest})
				if err == nil {
					err = b.Close()
				}
				if err == nil {
					err = s.SetName(ctx, "child", h)
				}
				s.Settle()
				answer = string(h)
			}
		case "collect":
			var done content.Collected
			done, err = s.Collect(ctx, content.CollectOptions{})
			answer = fmt.Sprint(done.Kept, " ", done.Removed)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
}

// Child is a process that runs Serve.
type Child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// StartChild starts this test program with a setting that makes it run Serve; fail arms a failpoint in it.
func StartChild(t testing.TB, setting, fail string) *Child {
	t.Helper()
	c := &Child{t: t, cmd: exec.Command(os.Args[0])} //nolint:noctx // the test ends it
	c.cmd.Env = append(os.Environ(), setting, failpoint.Env+"="+fail, "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = os.Stderr
	c.in = fixture.Must[io.WriteCloser](t)(c.cmd.StdinPipe())
	c.out = bufio.NewScanner(fixture.Must[io.ReadCloser](t)(c.cmd.StdoutPipe()))
	fixture.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// say sends a line to the child and returns its answer; "" when it was killed.
func (c *Child) say(line string) string {
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
func (c *Child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // it was killed
}

// Killed sends the child a line that ends with its SIGKILL at the failpoint.
func (c *Child) Killed(line string) {
	c.t.Helper()
	if answer := c.say(line); answer != "" {
		c.t.Fatalf("%s: the child was not killed: %s", line, answer)
	}
	if err := c.cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		c.t.Fatalf("%s: the child ended by itself: %v", line, err)
	}
}
