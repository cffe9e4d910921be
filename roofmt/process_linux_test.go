package roofmt

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/process"
)

// A process that was killed, and whose parent has not asked for its end yet, is dead: what
// comes next must not wait for its locks.
func TestAKilledProcessIsDeadBeforeItsParentAsks(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	who := self{me().Domain, pid, startTime(pid)}
	if who.dead() {
		t.Fatal("it runs, and counts as dead")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, UIName)
	now := time.Now()
	lockFile(t, file, now, &owner{who, now.UnixNano()})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); process.Alive(pid) && time.Now().Before(end); { // the kernel takes its time
		time.Sleep(time.Millisecond)
	}
	if !who.dead() {
		t.Error("it was killed, and counts as alive")
	}
	if l, err := tryLock(file, time.Now()); err != nil {
		t.Error(err)
	} else if err := l.release(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}
