package process_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/process"
)

// childEnv makes this test program a child that prints what it knows of itself and waits.
const childEnv = "PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Printf("%d %q\n", process.Start(os.Getpid()), process.System())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts a process, and returns its start time and system as it sees them.
func child(t *testing.T) (cmd *exec.Cmd, start int64, system string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "%d %q\n", &start, &system); err != nil {
		t.Fatalf("%q: got %v, want no error", line, err)
	}
	return cmd, start, system
}

// A killed process is dead before its parent collects it, and after that.
func TestAKilledProcessIsNotAlive(t *testing.T) {
	cmd, _, _ := child(t)
	pid := cmd.Process.Pid
	if !process.Alive(pid) {
		t.Error("a running process is not alive")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	known := runtime.GOOS == "linux" || runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	for end := time.Now().Add(time.Minute); known && process.Alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a killed process that its parent has not collected is alive")
		}
	}
	_ = cmd.Wait()
	if process.Alive(pid) {
		t.Error("a process that was collected is alive")
	}
}

func TestAlive(t *testing.T) {
	for pid, want := range map[int]bool{
		os.Getpid():  true,
		os.Getppid(): true,
		1:            true, // of another user, perhaps
		0:            true, // not one process
		-1:           true,
		1 << 30:      false,
	} {
		if got := process.Alive(pid); got != want {
			t.Errorf("process %d: got %v, want %v", pid, got, want)
		}
	}
}

func TestStartIsTheSameForEveryObserver(t *testing.T) {
	cmd, start, system := child(t)
	if got := process.Start(cmd.Process.Pid); got != start {
		t.Errorf("got start %d, the process itself sees %d", got, start)
	}
	if got := process.System(); got != system {
		t.Errorf("got system %q, a child sees %q", got, system)
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return
	}
	if start == 0 || system == "" || process.Boot() == "" {
		t.Errorf("got start %d, system %q, boot %q", start, system, process.Boot())
	}
	time.Sleep(50 * time.Millisecond) // Linux counts in hundredths of a second
	if _, later, _ := child(t); later <= start {
		t.Errorf("got start %d of a later process, %d of an earlier one", later, start)
	}
	if got := process.Start(1 << 30); got != 0 {
		t.Errorf("got start %d of a process that does not exist", got)
	}
}
