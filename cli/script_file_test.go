package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func write(ts *testscript.TestScript, name string, data []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o600))
}

// taskID reads the first event's task.
func taskID(ts *testscript.TestScript, _ bool, _ []string) {
	line, _, _ := strings.Cut(ts.ReadFile("out"), "\n")
	var e struct {
		Task  string `json:"task_id"`
		Items []struct{ ID string }
	}
	ts.Check(json.Unmarshal([]byte(line), &e))
	if e.Task == "" && len(e.Items) == 1 { // a list
		e.Task = e.Items[0].ID
	}
	if e.Task == "" {
		ts.Fatalf("no task in %s", line)
	}
	ts.Setenv("ID", e.Task)
}

// cmpjson compares two files as JSON, blanks aside. Numbers and escapes must be
// spelled alike.
func cmpjson(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: cmpjson A B")
	}
	var both [2]bytes.Buffer
	for i, name := range args {
		ts.Check(json.Compact(&both[i], []byte(ts.ReadFile(name))))
	}
	if bytes.Equal(both[0].Bytes(), both[1].Bytes()) == neg {
		ts.Fatalf("%s: got %s\n%s:\n%s, want bytes.Equal(both[0].Bytes(), both[1].Bytes()) != neg",
			args[0], &both[0], args[1], &both[1])
	}
}

func code(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
