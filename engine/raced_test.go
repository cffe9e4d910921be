package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/esjson"
)

// Roo's overlapping saves leave the rows of a completion out. They are shown before what the
// person says to it, as Roo would have it.
func TestWordsToACompletionThatRooDidNotSaveStandBehindIt(t *testing.T) {
	const id = "0199f0a1-0000-7abc-8def-aaaaaaaaaaaa"
	for name, c := range map[string]struct{ row, resume, words, want string }{
		"one save behind":     {`{"ts":12,"type":"say","say":"completion_result","text":"","partial":true}`, "", "more", "completion_result= completion_result=Done. ask:completion_result= ask:resume_completed_task= user_feedback=more"},
		"only the ask":        {`{"ts":12,"type":"say","say":"completion_result","text":"Done.","partial":false}`, "", "more", "completion_result=Done. ask:completion_result= ask:resume_completed_task= user_feedback=more"},
		"opened in an editor": {`{"ts":12,"type":"say","say":"completion_result","text":"Done.","partial":false}`, `,{"ts":13,"type":"ask","ask":"resume_task"}`, "more", "completion_result=Done. ask:completion_result= ask:resume_completed_task= user_feedback=more"},
		"without words":       {`{"ts":12,"type":"say","say":"completion_result","text":"","partial":true}`, "", "", "completion_result= completion_result=Done. ask:completion_result= ask:resume_completed_task="},
	} {
		t.Run(name, func(t *testing.T) {
			storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
			dir, workspace := filepath.Join(storage, "tasks", id), t.TempDir()
			for file, text := range map[string]string{
				"ui_messages.json":              `[{"ts":10,"type":"say","say":"text","text":"the job","images":[]},` + c.row + c.resume + `]`,
				"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"<user_message>\nthe job\n</user_message>"}],"ts":10},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"attempt_completion","input":{"result":"Done."}}],"ts":11}]`,
				"history_item.json":             `{"id":"` + id + `","number":1,"ts":12,"task":"the job","tokensIn":0,"tokensOut":0,"totalCost":0,"size":1,"workspace":"` + workspace + `","mode":"code"}`,
			} {
				path, old := filepath.Join(dir, file), time.Now().Add(-time.Hour)
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				} else if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(err)
				}
			}
			b := newBench(t, storage)
			b.workspace = workspace
			_, out, _ := b.run(engine.Request{
				Task: id,
				Text: c.words,
				Choice: setup.Choice{Provider: "script", Approve: "all", Model: b.script(`
- {}
- tools: [{name: attempt_completion, input: {result: "More is done."}}]
  expect: ["more"]
`)},
			})
			if want := map[string]string{"": "Done.", "more": "More is done."}[c.words]; out.State != "completed" || out.Reason != want {
				t.Fatalf("%+v, want %s", out, want)
			}
			data, err := os.ReadFile(filepath.Join(dir, "ui_messages.json"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for row := range esjson.Array(data) {
				kind, said := esjson.GetString(row, "say")
				if !said {
					kind, _ = esjson.GetString(row, "ask")
					kind = "ask:" + kind
				}
				text, _ := esjson.GetString(row, "text")
				got = append(got, kind+"="+text)
			}
			got = got[1:]
			if i := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "api_req_started") }); i >= 0 {
				got = got[:i]
			}
			if rows := strings.Join(got, " "); rows != c.want {
				t.Errorf("rows\n%s\nwant\n%s", rows, c.want)
			}
			if n := bytes.Count(data, []byte(`"ask":"completion_result"`)); n != 1 && c.words == "" {
				t.Errorf("the completion is asked about %d times", n)
			}
		})
	}
}
