package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/doctor"
)

// writesAndDelegates runs two tools beside the call that starts a subtask.
const writesAndDelegates = `
- tools:
    - {name: update_todo_list, input: {todos: "[-] part 1"}}
    - {name: write_to_file, input: {path: one.txt, content: "one\n"}}
    - {name: new_task, input: {mode: code, message: "do part ONE", todos: null}}
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
  expect: ["Result:\nOne is done."]
- task: part ONE
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: []}}]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`

func (b *bench) apiFile(id string) []byte {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, "tasks", id, "api_conversation_history.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// While a subtask works, Roo's file holds the results of the calls beside it, so that Roo,
// which may go on with the task there, does not tell the model that they were interrupted.
func TestResultsBesideASubtaskAreInRoosFile(t *testing.T) {
	const standIn = `"content":"Tool execution was interrupted before completion."`
	for _, how := range []string{"answered here", "without the record of what was written", "finished by Roo"} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(writesAndDelegates), Approve: "all"}})
			child := b.onlyChild(run.TaskID).ID
			if out.State != "waiting" {
				t.Fatalf("got %+v, want out.State = \"waiting\"", out)
			}
			data := b.apiFile(run.TaskID)
			last := data[bytes.LastIndex(data, []byte(`{"role":`)):]
			if got := bytes.Count(last, []byte(`"type":"tool_result"`)); !bytes.HasPrefix(last, []byte(`{"role":"user"`)) || got != 3 || bytes.Count(last, []byte(standIn)) != 1 {
				t.Fatalf("the last turn of the file has %d results, want 3 with one stand-in: %s", got, last)
			}
			dir := filepath.Join(b.root, "tasks", run.TaskID)
			b.restart(engine.Options{})
			switch how {
			case "without the record of what was written":
				if err := os.Remove(filepath.Join(dir, "projection.json")); err != nil {
					t.Fatal(err)
				}
			case "finished by Roo":
				b.finishAsRoo(run.TaskID, child, data, last, standIn)
			}
			ref, err := b.store.Find(t.Context(), run.TaskID)
			if err != nil {
				t.Fatal(err)
			}
			v, err := b.store.Read(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(v.Pending) > 0, how == "finished by Roo"; got != want {
				t.Errorf("changed by another program is %v, want %v: %+v", got, want, v.Pending)
			}
			v.Close()
			if report, err := doctor.Check(t.Context(), b.store, []string{run.TaskID}, doctor.Options{}); err != nil || len(report.Damaged) > 0 && how == "answered here" {
				t.Errorf("got %+v, %v, want no error and (len(report.Damaged) <= 0 or how != \"answered here\")",
					report.Damaged, err)
			}
			words := "this one"
			if how == "finished by Roo" {
				words = "go on"
			}
			_, out, _ = b.run(engine.Request{Task: run.TaskID, Text: words})
			if out.State != "completed" || out.Reason != "All is done." {
				t.Fatalf(`got %+v, want out.State = "completed" and out.Reason = "All is done."`, out)
			}
			data = b.apiFile(run.TaskID)
			if n := bytes.Count(data, []byte(standIn)); n != 0 || b.resultsGiven(run.TaskID, child) != 1 {
				t.Errorf("%d stand-ins are left, want none; the result is told %d times, want once\n%s", n, b.resultsGiven(run.TaskID, child), data)
			}
			if n := bytes.Count(data, []byte(`"type":"tool_result"`)); n != 3 {
				t.Errorf("%d results in the file, want 3\n%s", n, data)
			}
			if text, err := os.ReadFile(filepath.Join(b.workspace, "one.txt")); err != nil || string(text) != "one\n" {
				t.Errorf("got %q, %v, want no error and string(text) = \"one\\n\"", text, err)
			}
		})
	}
}

// finishAsRoo does to the folder of a waiting task what Roo does when its subtask completes there.
func (b *bench) finishAsRoo(id, child string, data, last []byte, standIn string) {
	b.t.Helper()
	dir := filepath.Join(b.root, "tasks", id)
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		old := time.Now().Add(-time.Hour)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		} else if err := os.Chtimes(path, old, old); err != nil {
			b.t.Fatal(err)
		}
	}
	returned := strings.Replace(string(last), standIn, `"content":"Subtask `+child+` completed.\n\nResult:\nOne is done."`, 1)
	put("api_conversation_history.json", strings.Replace(string(data), string(last), returned, 1))
	item, err := os.ReadFile(filepath.Join(dir, "history_item.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	text := strings.Replace(string(item), `"status":"delegated"`, `"status":"active"`, 1)
	text = strings.Replace(text, `"awaitingChildId":"`+child+`",`, "", 1)
	put("history_item.json", strings.TrimSuffix(text, "}")+`,"completedByChildId":"`+child+`","completionResultSummary":"One is done."}`)
}
