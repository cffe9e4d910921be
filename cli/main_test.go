package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"roost": func() { os.Exit(Main()) }})
}

// Scenarios run roost as a process of its own, as a user's shell does.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOST_ROOT", e.WorkDir+"/root")
			e.Setenv("ROOST_CACHE", e.WorkDir+"/cache")
			e.Setenv("ROOST_SOURCES", "none")
			e.Setenv("HOME", e.WorkDir+"/home")
			return os.MkdirAll(e.WorkDir+"/ws", 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exits CODE COMMAND... runs a command that must end with that code.
			"exits":   exits,
			"matches": matches,
			// id puts the task's id of the file out, NDJSON, into $ID.
			"id": taskID,
			// cmpjson A B: both files hold the same JSON.
			"cmpjson": cmpjson,
		},
	})
}
