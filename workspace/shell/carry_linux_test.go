package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Who is just becoming another program shows none of his environment, or the old one. He
// never shows a part of it, and is never taken for somebody who has none.
func TestWhoBecomesAnotherProgramIsFoundOrAskedAgain(t *testing.T) {
	mark := NewMark()
	line := `exec /bin/sh -c "$0" "$0"`
	env := []string{"LONG=" + strings.Repeat("x", 3000), markVar + "=" + mark}
	pid := start(t, env, "/bin/sh", "-c", line, line)
	for n := range 3000 {
		l := &look{seen: map[int]bool{pid: true}}
		if !l.carries(pid, mark) && (!l.unsure || l.seen[pid]) {
			t.Fatalf("after %d times he is a stranger: unsure %v, seen %v", n, l.unsure, l.seen[pid])
		}
	}
	if found := FindMarked(mark); len(found) != 1 {
		t.Errorf("found %+v", found)
	}
}

// However much there is, it is read in one go.
func TestALongEnvironmentIsReadWhole(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 1000)
	name := filepath.Join(t.TempDir(), "environ")
	if err := os.WriteFile(name, long, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 1, len(long) - 1, len(long), len(long) + 1} {
		l := &look{buf: make([]byte, room, room+1)}
		if room == 0 {
			l.buf = nil
		}
		if got, err := l.read(name); err != nil || !bytes.Equal(got, long) {
			t.Errorf("with room for %d: %d bytes, %v", room, len(got), err)
		}
	}
}

const headless = "SHELL_TEST_HEADLESS"

func init() {
	if os.Getenv(headless) != "" {
		runtime.LockOSThread() // main stays on the first thread
	}
}

// endFirstThread is a program whose first thread ends while others go on.
func endFirstThread() {
	go func() {
		for {
			time.Sleep(time.Minute)
		}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// A process whose first thread has ended looks like a zombie, and lives.
func TestWhoseFirstThreadHasEndedIsFoundAndEnded(t *testing.T) {
	mark := NewMark()
	pid := start(t, []string{headless + "=1", markVar + "=" + mark}, os.Args[0])
	fixture.Eventually(t, "its first thread has ended", func() bool { s, _ := readStat(pid); return s.state == 'Z' })
	if s, _ := readStat(pid); s.dead() {
		t.Fatal("it is taken for dead")
	}
	if found, err := EndMarked(t.Context(), mark); err != nil || len(found) != 1 || found[0].PID != pid {
		t.Errorf("EndMarked: %+v, %v", found, err)
	}
	if s, ok := readStat(pid); ok && !s.dead() {
		t.Error("it is still there")
	}
}
