package failure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/client"
)

func TestAnErrorsFirstWordsAreWhatFailed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, what, why string }{
		{"print the list: write /dev/stdout: no space left", "print the list", "write /dev/stdout: no space left"},
		{`rename "a: b": it is busy`, `rename "a: b"`, "it is busy"},
		{`C:\x: it is gone`, `C:\x`, "it is gone"},
		{"no colon", itFailed, "no colon"},
		{"nothing behind: ", itFailed, "nothing behind: "},
		{": nothing before", itFailed, ": nothing before"},
		{`an open " quotation: mark`, itFailed, `an open " quotation: mark`},
		{strings.Repeat("x", 200) + ": too long for a headline", itFailed, strings.Repeat("x", 200) + ": too long for a headline"},
	} {
		if f := Of(errors.New(tt.text)); f.What != tt.what || f.Why != tt.why {
			t.Errorf("%q: %q because of %q", tt.text, f.What, f.Why)
		}
	}
}

// What helps against a full disk is room on it, not the help of the command.
func TestAFullDiskIsNamedWithItsFolder(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("its errors are others")
	}
	dir := t.TempDir()
	at := func(path string, err error) error {
		return fmt.Errorf("export task x: %w", &os.PathError{Op: "write", Path: path, Err: err})
	}
	for _, tt := range []struct {
		err             error
		code, try, todo string
		status          int
		retryable       bool
	}{
		{at(filepath.Join(dir, "x.md"), syscall.ENOSPC), "disk_full", "df -h " + dir, "make room", 507, true},
		{at(filepath.Join(dir, "x.md"), syscall.EDQUOT), "disk_full", "df -h " + dir, "make room", 507, true},
		{at(filepath.Join(dir, "x.md"), syscall.EROFS), "read_only", "df -h " + dir, "another place", 0, false},
		{at("/dev/shm/tasks/x.md", syscall.ENOSPC), "disk_full", "df -h /dev/shm/tasks", "make room", 507, true},
		{at("/dev/stdout", syscall.ENOSPC), "disk_full", "df -h ", "make room", 507, true},
		{at("ui_messages.json", syscall.ENOSPC), "disk_full", "df -h ", "make room", 507, true},
	} {
		f := Of(tt.err)
		command, todo, _ := strings.Cut(f.Try, " # ")
		if f.Exit != ExitFailed || f.Code != tt.code || f.Status != tt.status || f.Retryable != tt.retryable ||
			command != tt.try+" " && command != tt.try || !strings.Contains(todo, tt.todo) || f.What != "export task x" {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}

// So it is where a server, or the service in this process, gives a problem in place of the error.
func TestTheProblemOfAFullDisk(t *testing.T) {
	t.Parallel()
	f := Of(fmt.Errorf("rename: %w", &client.Problem{Status: 507, Code: "disk_full", Title: "The disk is full", Retryable: true}))
	if f.Exit != ExitFailed || !strings.HasPrefix(f.Try, "df -h  # make room") || !f.Retryable {
		t.Errorf("got %+v, want exit code %d and df -h", f, ExitFailed)
	}
}
