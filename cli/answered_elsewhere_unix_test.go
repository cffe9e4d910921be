//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// A question of ours that was answered in the editor is open no more, as soon as the editor's files say so, and words given to resume go out
// with the next request.
func TestAQuestionAnsweredInTheEditor(t *testing.T) {
	t.Parallel()
	const (
		id     = "22222222-2222-4222-8222-222222222222"
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_q","content":"Task was interrupted before this tool call could be completed."},{"type":"text","text":"<user_message>\nthe answer is x\n</user_message>"}],"ts":%d}`
		said   = `{"ts":%d,"type":"say","say":"user_feedback","text":"the answer is x","images":[]},{"ts":%d,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\",\"tokensIn\":10,\"tokensOut\":5,\"cost\":0.001}"}`
		ended  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_end","name":"attempt_completion","input":{"result":"Done by Roo."}}],"ts":%d}`
		reads  = `{"role":"assistant","content":[{"type":"text","text":"Roo reads."},{"type":"tool_use","id":"toolu_r","name":"read_file","input":{"path":"a.txt"}}],"ts":%d}`
	)
	for name, c := range map[string]struct{ ui, api, status string }{
		"the task ended there": {
			said + `,{"ts":%d,"type":"say","say":"completion_result","text":"Done by Roo."},{"ts":%d,"type":"ask","ask":"completion_result","text":""}`, result + "," + ended, "completed",
		},
		"its files are one save behind": {said + `,{"ts":%d,"type":"say","say":"completion_result","text":"","partial":true}`, result + "," + ended, "completed"},
		"it works there still":          {said + `,{"ts":%d,"type":"say","say":"text","text":"Roo reads.","partial":false}`, result + "," + reads, "interrupted"},
		"only the answer is there":      {said, result, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.New(t,
				llmtest.Call("toolu_q", "ask_followup_question", `{"question":"Which?","follow_up":[{"text":"x","mode":null},{"text":"y","mode":null}]}`),
				llmtest.Call("toolu_last", "attempt_completion", `{"result":"all done"}`))
			s := newSandbox(t)
			s.env("ANTHROPIC_API_KEY=sk-x", "ANTHROPIC_BASE_URL="+model.URL)
			s.foreign(id, "the beginning", 1776200000000)
			flags := []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5"}
			if r := s.roost(append([]string{"resume", id, "go on", "-C", s.ws}, flags...)...); r.code != failure.ExitInput {
				t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			dir := filepath.Join(s.store, "tasks", id)
			appendTo := func(file, rows string) {
				path := filepath.Join(dir, file)
				data, err := os.ReadFile(path)
				must(t, err)
				var all []json.RawMessage
				must(t, json.Unmarshal(data, &all))
				var last struct{ TS int64 }
				must(t, json.Unmarshal(all[len(all)-1], &last))
				for strings.Contains(rows, "%d") {
					last.TS += 10
					rows = strings.Replace(rows, "%d", strconv.FormatInt(last.TS, 10), 1)
				}
				must(t, os.WriteFile(path, []byte(strings.TrimSuffix(string(data), "]")+","+rows+"]"), 0o600))
				must(t, os.Chtimes(path, yesterday, yesterday))
			}
			appendTo(uiFile, c.ui)
			appendTo("api_conversation_history.json", c.api)
			if got := s.task(id); got.OpenQuestions != 0 || got.Status != c.status {
				t.Errorf("it is listed as %s with %d open questions, want %s", got.Status, got.OpenQuestions, c.status)
			}
			if r := s.roost("questions"); strings.Contains(r.out, "Which?") {
				t.Errorf("it is still asked: %s", r.out)
			}
			r := s.roost(append([]string{"resume", id, "WORDS for the model"}, flags...)...)
			if r.code != failure.ExitDone {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			requests := model.Requests()
			if len(requests) != 2 || strings.Count(string(requests[len(requests)-1].Body), "WORDS for the model") != 1 {
				t.Errorf("%d requests, the last one without the words:\n%s", len(requests), requests[len(requests)-1].Body)
			}
			journal, err := filepath.Glob(filepath.Join(s.root, "adopted", "*", id, "journal.jsonl"))
			must(t, err)
			data, err := os.ReadFile(journal[0])
			must(t, err)
			if !strings.Contains(string(data), `"reason":"answered elsewhere"`) {
				t.Error("the journal does not say that it was answered elsewhere")
			}
		})
	}
}
