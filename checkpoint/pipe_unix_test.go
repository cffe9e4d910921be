//go:build unix

package checkpoint

import (
	"os"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
)

// What is no file is never opened: a pipe would not let go.
func TestSpecialFiles(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.must(syscall.Mkfifo(l.at("pipe"), 0o600))
	l.must(syscall.Mkfifo(l.at("pipe2"), 0o600))
	if v := l.look("pipe")["pipe"]; v.Kind != api.KindOther {
		t.Errorf("a pipe is %+v", v)
	}
	if v := l.hold("pipe")["pipe"]; v.Kind != api.KindOther {
		t.Errorf("a pipe is %+v", v)
	}
	s := l.survey()
	if s.Unheld() != "" {
		t.Errorf("unheld: %v", s.Unheld())
	}
	l.remove("pipe")
	l.must(os.WriteFile(l.at("pipe"), []byte("a file"), 0o600))
	got := l.changes(s)
	if f := got["pipe"]; len(got) != 1 || f.Was.Kind != api.KindOther || l.content(f.Now) != "a file" {
		t.Errorf("changes: %+v", got)
	}
}
