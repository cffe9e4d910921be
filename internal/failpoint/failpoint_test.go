//go:build unix

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain plays the program under test when it is run as a child: it passes
// places, says so, and has a handler that must not be run.
func TestMain(m *testing.M) {
	places := os.Getenv("FAILPOINT_TEST_PLACES")
	if places == "" {
		os.Exit(m.Run())
	}
	defer fmt.Println("deferred")
	for name := range strings.FieldsSeq(places) {
		fmt.Println(name)
		Hit(name)
	}
	fmt.Println("end")
}

// pass runs a child with a failpoint armed and gives what it printed, and whether
// it was killed.
func pass(t *testing.T, armed, places string) (printed string, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAILPOINT_TEST_PLACES="+places, Env+"="+armed)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
	return strings.Join(strings.Fields(string(out)), " "), killed
}

func TestHit(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	const all = "a b a b a end"
	for _, tt := range []struct {
		armed, printed string
		killed         bool
	}{
		{"", all + " deferred", false},
		{"a", "a", true},
		{"b", "a b", true},
		{"a:1", "a", true},
		{"a:2", "a b a", true},
		{"a:3", "a b a b a", true},
		{"a:4", all + " deferred", false},
		{"b:2", "a b a b", true},
		{"b:9", all + " deferred", false},
		{"c", all + " deferred", false},
		{"A", all + " deferred", false},
		{"a:0", "a", true}, // no count is the first pass
		{"a:x", "a", true},
		{"a:", "a", true},
		{":2", all + " deferred", false},
	} {
		printed, killed := pass(t, tt.armed, "a b a b a")
		if printed != tt.printed || killed != tt.killed {
			t.Errorf("armed %q: printed %q, killed %v, want %q, %v", tt.armed, printed, killed, tt.printed, tt.killed)
		}
	}
}

// Unarmed places are in the hottest loops; they must cost next to nothing.
func BenchmarkHitUnarmed(b *testing.B) {
	for b.Loop() {
		Hit("tool.write.before")
	}
}
