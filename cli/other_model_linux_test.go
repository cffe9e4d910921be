package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// Another tool's task was made with a model that the provider does not have. What would answer
// in its place is asked about on a terminal, refused without one, and goes on by the user's word.
func TestAnotherModelIsAskedAbout(t *testing.T) {
	t.Parallel()
	end := func(id string) llmtest.Reply { return llmtest.Call(id, "attempt_completion", `{"result":"all done"}`) }
	model := llmtest.New(t, end("toolu_1"), end("toolu_2"), end("toolu_3"), end("toolu_4"))
	s := newSandbox(t)
	s.env("ANTHROPIC_API_KEY=sk-x", "ANTHROPIC_BASE_URL="+model.URL)
	for _, id := range []string{"one-1", "two-2"} {
		s.foreign(id, "paint the fence", 1776100000000)
		words, err := json.Marshal("<environment_details>\n# Current Mode\n<slug>code</slug>\n<model>gpt-5</model>\n</environment_details>")
		must(t, err)
		path := filepath.Join(s.store, "tasks", id, "api_conversation_history.json")
		must(t, os.WriteFile(path, []byte(`[{"role":"user","content":[{"type":"text","text":"paint"},{"type":"text","text":`+string(words)+`}],"ts":1776100000000}]`), 0o600))
		must(t, os.Chtimes(path, yesterday, yesterday))
	}
	untouched := func(what string) {
		t.Helper()
		if n := len(model.Requests()); n != 0 {
			t.Fatalf("%s: %d requests were sent, want none", what, n)
		}
	}
	resume := []string{"resume", "one-1", "go on", "--provider", "anthropic"}
	r := s.roost(resume...)
	if r.code != failure.ExitInput || !strings.Contains(r.err, "gpt-5") || !strings.Contains(r.err, "roost resume one-1 --model claude-") {
		t.Fatalf("exit %d, want %d with the model and the way out\n%s", r.code, failure.ExitInput, r.err)
	}
	untouched("without a terminal")

	x := s.onTerminal(resume...)
	x.expect("was made with the model gpt-5")
	x.press("n\n")
	x.exits(failure.ExitInput)
	untouched("after no")

	o := s.server()
	code, got := o.do(http.MethodPost, "/v1/tasks/two-2/runs", map[string]any{"message": map[string]any{"text": "go on"}, "provider": "anthropic"})
	if code != http.StatusConflict || got["code"] != "other_model" {
		t.Fatalf("%d %v, want 409 other_model", code, got)
	}
	for query, want := range map[string]string{"?provider=anthropic": "[other_model]", "?provider=anthropic&model=claude-sonnet-4-5": "[]"} {
		code, got = o.do(http.MethodGet, "/v1/tasks/two-2/resume"+query, nil)
		if code != http.StatusOK || codesOf(got["asks"]) != want || got["place"] != "in_place" || got["first"] != true {
			t.Errorf("GET resume%s: %d %v, want it to go on in place, and to ask %s", query, code, got, want)
		}
	}
	// Roost continues a Cline folder as a fork, even where nothing in the storage names the tool.
	s.foreign("three-3", "paint the fence", 1776100000000)
	path := filepath.Join(s.store, "tasks", "three-3", "ui_messages.json")
	must(t, os.WriteFile(path, []byte(`[{"ts":1776100000000,"type":"say","say":"text","text":"paint the fence","conversationHistoryIndex":-1}]`), 0o600))
	must(t, os.Chtimes(path, yesterday, yesterday))
	if code, got = o.do(http.MethodGet, "/v1/tasks/three-3/resume", nil); code != http.StatusOK || got["place"] != "fork" {
		t.Errorf("GET resume of a folder of Cline's: %d %v, want that it goes on as a fork", code, got)
	}
	untouched("over HTTP")
	code, got = o.do(http.MethodPost, "/v1/tasks/two-2/runs", map[string]any{"message": map[string]any{"text": "go on"}, "provider": "anthropic", "model": "claude-sonnet-4-5"})
	if code != http.StatusAccepted {
		t.Fatalf("%d %v, want 202", code, got)
	}

	x = s.onTerminal(resume...)
	x.expect("? (y, or anything else) > ")
	x.press("y\n")
	x.expect("all done")
	x.exits(failure.ExitDone)
	if r := s.roost(resume...); r.code != failure.ExitDone { // it has a model of its own by now
		t.Errorf("exit %d, want %d\n%s", r.code, failure.ExitDone, r.err)
	}
}
