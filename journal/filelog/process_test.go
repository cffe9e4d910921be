package filelog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

const childEnv = "FILELOG_TEST_CHILD"

// quickExit keeps a child that is built with the race detector from sleeping for
// a second before it ends.
const quickExit = "GORACE=atexit_sleep_ms=0"

// childMain is the program of the child processes: it owns a folder, and
// appends, writing each sequence to stdout once it is durable.
func childMain() {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return
	}
	ctx := context.Background()
	o, err := filelog.Own(ctx, dir, filelog.Options{Owner: journal.OwnerInfo{Program: "child"}})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	if os.Getenv(childEnv+"_ONCE") != "" {
		_, err := o.Append(ctx, journal.Draft{By: "child", Events: []journal.Event{[]byte(`{}`)}})
		if err = errors.Join(err, o.Barrier(ctx), o.Close()); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fmt.Println("open", o.Epoch())
	stamp := os.Getenv(childEnv+"_STAMP") != ""
	if stamp {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	for n := 0; ; n++ {
		var seq uint64
		for range 1 + n%3 {
			if seq, err = o.Append(ctx, journal.Draft{At: time.Now().UnixNano(), By: "child", Events: []journal.Event{fmt.Appendf(nil, `{"pad":"%0*d"}`, n%700, n)}}); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
		}
		if err := o.Barrier(ctx); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("ack", seq)
		if stamp {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	in  io.WriteCloser
}

func startChild(t *testing.T, dir string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+dir), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, bufio.NewScanner(out), in}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// next returns the number behind a word of the child's, or false at its end.
func (c *child) next(t *testing.T, word string) (uint64, bool) {
	t.Helper()
	for c.out.Scan() {
		w, rest, _ := strings.Cut(c.out.Text(), " ")
		if w == "error" {
			t.Fatalf("child: %s", rest)
		}
		if w == word {
			n, err := strconv.ParseUint(rest, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// checkLog verifies order and epochs of a whole log and returns its head.
func checkLog(t *testing.T, dir string) uint64 {
	t.Helper()
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last, epoch uint64
	for c, err := range r.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Seq != last+1 || c.Epoch < epoch {
			t.Fatalf("commit %d of epoch %d after %d of %d", c.Seq, c.Epoch, last, epoch)
		}
		last, epoch = c.Seq, c.Epoch
	}
	h, err := r.Health(t.Context())
	if err != nil || !h.OK() || len(h.SetAside) > 0 || h.Head != last {
		t.Fatalf("health %+v %v, head %d", h, err, last)
	}
	return last
}

func TestKilledAtAnyMoment(t *testing.T) {
	rounds := 120
	if testing.Short() {
		rounds = 15
	}
	dir := t.TempDir()
	var epoch, acks uint64
	for round := range rounds {
		c := startChild(t, dir)
		e, ok := c.next(t, "open")
		if !ok || e <= epoch {
			t.Fatalf("round %d: epoch %d after %d", round, e, epoch)
		}
		epoch = e
		time.AfterFunc(time.Duration(rand.IntN(25000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() })
		var acked uint64
		for {
			seq, ok := c.next(t, "ack")
			if !ok {
				break
			}
			acked = seq
			acks++
		}
		_ = c.cmd.Wait()
		if head := checkLog(t, dir); head < acked {
			t.Fatalf("round %d: acknowledged %d, found %d", round, acked, head)
		}
	}
	t.Logf("%d rounds, %d acknowledged barriers", rounds, acks)
	if acks == 0 {
		t.Fatal("nothing was ever acknowledged: the test tests nothing")
	}
}

func TestKilledAtFailpoints(t *testing.T) {
	for _, point := range []string{"journal.written", "journal.synced"} {
		for _, at := range []int{1, 2, 7} {
			t.Run(fmt.Sprintf("%s:%d", point, at), func(t *testing.T) {
				dir := t.TempDir()
				c := startChild(t, dir, fmt.Sprintf("%s=%s:%d", failpoint.Env, point, at))
				var acked uint64
				for {
					seq, ok := c.next(t, "ack")
					if !ok {
						break
					}
					acked = seq
				}
				if err := c.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
					t.Fatalf("the failpoint did not kill: %v", err)
				}
				if head := checkLog(t, dir); head < acked || head == 0 {
					t.Fatalf("acknowledged %d, found %d", acked, head)
				}
				o := mustOwn(t, dir, filelog.Options{})
				if o.Epoch() != 2 {
					t.Fatalf("epoch %d", o.Epoch())
				}
				checkLog(t, dir)
			})
		}
	}
}

func TestOneOwnerAmongProcesses(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	c.next(t, "open")
	_, err := filelog.Own(t.Context(), dir, filelog.Options{})
	var busy *journal.BusyError
	if !errors.As(err, &busy) || busy.Holder.PID != c.cmd.Process.Pid || busy.Holder.Program != "child" {
		t.Fatalf("%v, child is %d", err, c.cmd.Process.Pid)
	}
	c.kill()
	start := time.Now()
	mustOwn(t, dir, filelog.Options{})
	if d := time.Since(start); d > 30*time.Second {
		t.Fatalf("took %v", d)
	}
	checkLog(t, dir)
}

func TestCommandsDoNotInheritTheLock(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip("no sleep:", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	mustOwn(t, dir, filelog.Options{})
}

func TestFollowAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir, childEnv+"_STAMP=1")
	c.next(t, "open")
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { _, _ = c.in.Write([]byte("\n")) }()
	go func() { // keep the pipe empty
		for c.out.Scan() {
		}
	}()
	var late []time.Duration
	want := uint64(1)
	for cm, err := range r.Follow(t.Context(), 1) {
		if err != nil || cm.Seq != want {
			t.Fatalf("got %d, want %d: %v", cm.Seq, want, err)
		}
		if want > 1 { // epoch.opened is stamped in milliseconds
			late = append(late, time.Since(time.Unix(0, cm.At)))
		}
		if want++; want > 200 {
			break
		}
	}
	slices.Sort(late)
	t.Logf("append to follower in another process, sync included: median %v, p99 %v", late[len(late)/2], late[len(late)*99/100])
}

func mustOwn(t testing.TB, dir string, opt filelog.Options) journal.Owner {
	t.Helper()
	o, err := filelog.Own(context.Background(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func ExampleOwn() {
	dir := filepath.Join(os.TempDir(), "filelog-example")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	o, err := filelog.Own(ctx, dir, filelog.Options{By: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer o.Close()
	_, _ = o.Append(ctx, journal.Draft{By: "example", Events: []journal.Event{[]byte(`{"type":"note"}`)}})
	if err := o.Barrier(ctx); err != nil {
		fmt.Println(err) // not saved: say so, and go on trying
	}
	for c, err := range o.Read(ctx, 2) {
		fmt.Println(c.Seq, string(c.Events[0]), err)
	}
	// Output: 2 {"type":"note"} <nil>
}
