package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// delegatedFolders are a parent and a child as Roo leaves them while the child works:
// the parent's last reply calls new_task, and its item names who is waited for.
func delegatedFolders(t *testing.T, workspace, parentAPI, childUI, childAPI, childItem string) (storage string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	put := func(id, name, text string) {
		dir := filepath.Join(storage, "tasks", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		old := time.Now().Add(-time.Hour)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		} else if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	const parent, child = "0199f0a1-0000-7abc-8def-aaaaaaaaaaaa", "0199f0a2-7c1b-7def-8a3b-0123456789ab"
	put(parent, "ui_messages.json", `[{"ts":10,"type":"say","say":"text","text":"the whole job","images":[]},{"ts":12,"type":"ask","ask":"tool","text":"{\"tool\":\"newTask\",\"mode\":\"Code\",\"content\":\"do part ONE\",\"todos\":[]}"}]`)
	put(parent, "api_conversation_history.json", `[{"role":"user","content":[{"type":"text","text":"<user_message>\nthe whole job\n</user_message>"}],"ts":10},`+parentAPI+`]`)
	put(parent, "history_item.json", `{"id":"`+parent+`","number":1,"ts":12,"task":"the whole job","tokensIn":0,"tokensOut":0,"totalCost":0,"size":1,"workspace":"`+workspace+`","mode":"code","status":"delegated","delegatedToId":"`+child+`","awaitingChildId":"`+child+`","childIds":["`+child+`"],"zoo":true}`)
	put(child, "ui_messages.json", childUI)
	put(child, "api_conversation_history.json", childAPI)
	put(child, "history_item.json", `{"id":"`+child+`","parentTaskId":"`+parent+`","number":1,"ts":20,"task":"do part ONE","tokensIn":0,"tokensOut":0,"totalCost":0,"size":1,"workspace":"`+workspace+`","mode":"code",`+childItem+`}`)
	return storage
}

// What a parent's history ends with: a call alone, or a call behind another one, whose
// results Roo has stored already, with a stand-in for the result that is to come.
const (
	callAlone  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"new_task","input":{"mode":"code","message":"do part ONE","todos":null}}],"ts":11}`
	callBehind = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"update_todo_list","input":{"todos":"[-] part 1"}},{"type":"tool_use","id":"toolu_1","name":"new_task","input":{"mode":"code","message":"do part ONE","todos":null}}],"ts":11},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"Tool execution was interrupted before completion.","is_error":true},{"type":"tool_result","tool_use_id":"toolu_0","content":"Todo list updated successfully."}],"ts":12}`
)

// A parent that waits in another tool's storage goes on there: its child is the one that
// the tool named, whether it still has to work or the tool completed it meanwhile.
func TestADelegatedTaskOfAnotherTool(t *testing.T) {
	const parent, child = "0199f0a1-0000-7abc-8def-aaaaaaaaaaaa", "0199f0a2-7c1b-7def-8a3b-0123456789ab"
	const words = `{"role":"user","content":[{"type":"text","text":"<user_message>\ndo part ONE\n</user_message>"}],"ts":20}`
	script := `
- {}
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
  expect: ["Result:\nOne is done."]
- task: part ONE
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`
	for name, c := range map[string]struct{ parent, ui, api, item string }{
		"another tool ran before": {callBehind, `[{"ts":20,"type":"say","say":"text","text":"do part ONE","images":[]}]`, `[` + words + `]`, `"status":"active"`},
		"still at work":           {callAlone, `[{"ts":20,"type":"say","say":"text","text":"do part ONE","images":[]}]`, `[` + words + `]`, `"status":"active"`},
		"completed by the tool": {
			callAlone, `[{"ts":20,"type":"say","say":"text","text":"do part ONE","images":[]},{"ts":21,"type":"say","say":"completion_result","text":"One is done.","partial":false}]`,
			`[` + words + `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_9","name":"attempt_completion","input":{"result":"One is done."}}],"ts":21}]`,
			`"status":"completed"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := t.TempDir()
			storage := delegatedFolders(t, workspace, c.parent, c.ui, c.api, c.item)
			b := newBench(t, storage)
			b.workspace = workspace
			_, out, _ := b.run(engine.Request{Task: parent, Choice: setup.Choice{Provider: "script", Model: b.script(script), Approve: "all"}})
			if out.State != "completed" || out.Reason != "All is done." {
				t.Fatalf(`got %+v, want out.State = "completed" and out.Reason = "All is done."`, out)
			}
			if n := b.resultsGiven(parent, child); n != 1 {
				t.Errorf("told %d times", n)
			}
			if c.parent == callBehind {
				m := b.state(parent).API()[2]
				if !strings.Contains(string(m.Raw()), `{"type":"tool_result","tool_use_id":"toolu_1","content":"Subtask `+child+` completed.\n\nResult:\nOne is done."},{"type":"tool_result","tool_use_id":"toolu_0"`) {
					t.Errorf("%s", m.Raw())
				}
			}
			item, err := os.ReadFile(filepath.Join(storage, "tasks", parent, "history_item.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{`"status":"active"`, `"completedByChildId":"` + child + `"`, `"completionResultSummary":"One is done."`, `"zoo":true`} {
				if !strings.Contains(string(item), part) {
					t.Errorf("%s is not in %s", part, item)
				}
			}
			if strings.Contains(string(item), "awaitingChildId") {
				t.Errorf("got %s, want not strings.Contains(string(item), \"awaitingChildId\")", item)
			}
		})
	}
}

// A child that is not to be found is not made anew under another tool's id.
func TestADelegatedTaskWhoseChildIsGone(t *testing.T) {
	const parent = "0199f0a1-0000-7abc-8def-aaaaaaaaaaaa"
	workspace := t.TempDir()
	storage := delegatedFolders(t, workspace, callAlone, "[]", "[]", `"status":"active"`)
	if err := os.RemoveAll(filepath.Join(storage, "tasks", "0199f0a2-7c1b-7def-8a3b-0123456789ab")); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, storage)
	_, out, _ := b.run(engine.Request{Task: parent, Choice: setup.Choice{Provider: "script", Model: b.script("- {}\n"), Approve: "all"}})
	s := b.state(parent)
	if got := s.Call("toolu_1"); out.State != "completed" || got.Finished == nil || got.Finished.Outcome != "error" || s.Awaited() != nil {
		t.Fatalf(`got %+v, %+v, want out.State = "completed" and got.Finished != nil and got.Finished.Outcome = "error" and s.Awaited() = nil`,
			out, got.Finished)
	}
	if dirs, _ := os.ReadDir(filepath.Join(b.root, "tasks")); len(dirs) > 0 {
		t.Errorf("made %v", dirs)
	}
}
