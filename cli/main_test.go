package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/roost-dev/roost/internal/testing/mcptest"
)

func TestMain(m *testing.M) {
	// The race detector sleeps a second at the end of each process, and there are
	// hundreds.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testscript.Main(hearing{m}, map[string]func(){"roost": func() {
		code := Main()
		if to := os.Getenv(peakVar); to != "" {
			// What the system counts for a process holds what its parent had when it was
			// started, and this one's parent is large. The status file is exact.
			if status, err := os.ReadFile("/proc/self/status"); err == nil {
				_ = os.WriteFile(to, status, 0o600) // a test that finds nothing measures nothing
			}
		}
		os.Exit(code)
	}, "mcpserver": func() { mcptest.Main(); os.Exit(2) }})
}

// afterTests ends what the tests of some systems share.
var afterTests = func() {}

// hearing are the tests, whoever starts them: under nohup all that they start would ignore that
// its terminal closes, as it should there. A signal that is heard here has its usual effect in
// a process that is started.
type hearing struct{ *testing.M }

func (h hearing) Run() int {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// Most tests wait for processes, leases and clocks. The flag -parallel overrides this.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)+1)); err != nil {
		panic(err)
	}
	code := h.M.Run()
	afterTests()
	return code
}

// peakVar names the file into which a process writes how much memory it had.
const peakVar = "ROOST_TEST_PEAK"

// peak is the most memory in bytes that such a process had, 0 where the system does
// not say.
func peak(t *testing.T, file string) int64 {
	t.Helper()
	status, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Errorf("the status of the process says nothing of its peak: %v", err)
	}
	return kb << 10
}

func nextCursor(ts *testscript.TestScript, _ bool, _ []string) {
	var page struct {
		Next string `json:"next_cursor"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("out")), &page))
	ts.Setenv("CURSOR", page.Next)
}

var yesterday = time.Now().Add(-24 * time.Hour)

// Scenarios run roost as a process of its own, as a user's shell does.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("ROOST_ROOT", e.WorkDir+"/root")
			e.Setenv("ROOST_CACHE", e.WorkDir+"/cache")
			e.Setenv("ROOST_SOURCES", "none")
			e.Setenv("HOME", e.WorkDir+"/home")
			if err := os.MkdirAll(e.WorkDir+"/ws", 0o700); err != nil {
				return err
			}
			// A file that was written just now may still be written: taking a task
			// over waits for it to rest.
			return filepath.WalkDir(e.WorkDir, func(path string, _ fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Chtimes(path, yesterday, yesterday)
			})
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exits CODE COMMAND... runs a command that must end with that code.
			"exits":   exits,
			"matches": matches,
			// id puts the task's id of the file out, NDJSON, into $ID.
			"id": taskID,
			// cursor puts next_cursor of the page in the file out into $CURSOR.
			"cursor": nextCursor,
			// cmpjson A B: both files hold the same JSON.
			"cmpjson": cmpjson,
			// fetch [CODE] PATH: what the server of serve.out answers goes into the file http.
			"fetch": fetch,
		},
	})
}

// scripts are the scripts to run. The short ones, for the race detector, are those that run two commands at once: of
// all others the packages' own tests are enough.
func scripts(t *testing.T) (names []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !testing.Short() || bytes.Contains(text, []byte("&\n")) {
			names = append(names, name)
		}
	}
	return names
}
