package job_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// talk builds a request of the Messages API: a text of the user's, or a call's id and
// what it gave.
type talk struct{ messages []any }

func (t talk) says(text string) talk {
	t.messages = append(t.messages, map[string]any{"role": "user", "content": text})
	return t
}

func (t talk) called(results ...string) talk { // id, result, id, result
	var calls, gave []any
	for i := 0; i < len(results); i += 2 {
		calls = append(calls, map[string]any{"type": "tool_use", "id": results[i], "name": "x", "input": map[string]any{}})
		gave = append(gave, map[string]any{"type": "tool_result", "tool_use_id": results[i], "content": results[i+1]})
	}
	t.messages = append(t.messages, map[string]any{"role": "assistant", "content": calls}, map[string]any{"role": "user", "content": gave})
	return t
}

func (t talk) request() llmtest.Request {
	body, _ := json.Marshal(map[string]any{"messages": t.messages})
	return llmtest.Request{Path: "/v1/messages", Body: body}
}

// answer is a reply in short: its status, or the ids and tools of its calls, or its text.
func answer(m *job.Model, t talk) string {
	r := m.Answer(t.request())
	if r.Status != 0 {
		return fmt.Sprint(r.Status)
	}
	var calls []string
	text := ""
	for _, raw := range r.Blocks {
		var b struct{ Type, ID, Name, Text string }
		_ = json.Unmarshal(raw, &b)
		switch b.Type {
		case "tool_use":
			calls = append(calls, b.ID+" "+b.Name)
		case "text":
			text = b.Text
		}
	}
	if calls == nil {
		return text
	}
	return strings.Join(calls, ", ")
}

const killed = "The program was killed while this tool ran. It is not known whether, or how far, it took effect. It was not run again."

func toy() *job.Model {
	call := func(tool, want string) job.Call {
		return job.Call{Tool: tool, Input: map[string]any{"id": "$ID"}, Want: want}
	}
	write := job.Call{Tool: "write_to_file", Input: map[string]any{"path": "f", "content": "c"}}
	return &job.Model{Job: job.Job{Plans: map[string][]job.Step{
		"main": {
			{Calls: []job.Call{call("list", "files"), call("find", "")}},
			{Calls: []job.Call{call("run", "ran")}, Mend: []job.Call{write, call("sure", "made sure")}, Faults: []job.Fault{job.RateLimited, job.Overloaded}},
			{Calls: []job.Call{call("end", "")}},
		},
		"side": {{Calls: []job.Call{call("other", "")}}},
	}}}
}

// What the model answers follows from the request alone: which step it is, whether the
// step before is done, and what is left to mend.
func TestAReplyFollowsFromTheRequest(t *testing.T) {
	begun := talk{}.says("Please. Follow the plan main. Soon.")
	first := begun.called("main-1-0-1", "the files", "main-1-0-2", "x")
	second := first.called("main-2-0-1", killed)
	for _, c := range []struct {
		name string
		talk talk
		want string
	}{
		{"the first words", begun, "main-1-0-1 list, main-1-0-2 find"},
		{"the same request again", begun, "main-1-0-1 list, main-1-0-2 find"},
		{"words of another plan", talk{}.says("Follow the plan side."), "side-1-0-1 other"},
		{"a step is done", first.called("main-2-0-1", "it ran"), "main-3-0-1 end"},
		{"a step is cut", second, "main-2-1-1 read_file, main-2-1-2 list_files"},
		{"it was looked at", second.called("main-2-1-1", "no such file", "main-2-1-2", "none"), "main-2-2-1 write_to_file, main-2-2-2 sure"},
		{"the mending is cut", second.called("main-2-2-1", "written", "main-2-2-2", killed), "main-2-3-1 read_file, main-2-3-2 list_files"},
		{"the mending is done", second.called("main-2-4-1", "written", "main-2-4-2", "made sure"), "main-3-0-1 end"},
		{"a write that was decided", first.called("main-2-0-1", "The program was killed while this tool ran. The file shows that the change was made; it was not made again."), "main-3-0-1 end"},
		{"the beginning was truncated", talk{}.says("[hidden]").called("main-2-2-1", "written", "main-2-2-2", "made sure"), "main-3-0-1 end"},
		{"words at the end", first.called("main-2-0-1", "it ran").says("thanks"), "main-3-0-1 end"},
		{"a summary is asked for", first.called("main-2-0-1", "it ran").says("Answer with the summary alone."), "Much was done. Go on with [main-3-0]."},
		{"a summary of what is told", talk{}.says("Assistant: [main-1-0]\nTool: ok\nAssistant: [main-2-0]\nTool: " + killed + "\nAnswer with the summary alone."), "Much was done. Go on with [main-2-1]."},
		{"after a summary", talk{}.says("Summary: Much was done. Go on with [main-3-0]."), "main-3-0-1 end"},
		{"after a summary and a step", talk{}.says("Go on with [main-1-0].").called("main-1-0-1", "files", "main-1-0-2", ""), "429"},
	} {
		m := toy()
		if got := answer(m, c.talk); got != c.want {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
		if p := m.Problems(); len(p) > 0 {
			t.Errorf("%s: got %v, want len(p) <= 0", c.name, p)
		}
	}
}

// What a model is told wrongly is a finding, and the job goes on.
func TestProblems(t *testing.T) {
	begun := talk{}.says("Follow the plan main.")
	for _, c := range []struct {
		name string
		talk talk
		want string
	}{
		{"no plan", talk{}.says("Hello."), "name no plan"},
		{"another result", begun.called("main-1-0-1", "nothing", "main-1-0-2", ""), `without "files"`},
		{"no result", begun.called("main-1-0-1", "files"), "main-1-0-2 has no result"},
		{"a call of nobody", begun.called("xyz", "files"), "none of ours"},
		{"unknown where it can be decided", begun.called("main-1-0-1", killed, "main-1-0-2", ""), "is unknown"},
		{"a mending that failed", begun.called("main-2-2-1", "", "main-2-2-2", "Error"), `without "made sure"`},
		{"a request after the end", begun.called("main-3-0-1", "fine"), "after its last step"},
		{"a summary of nothing", talk{}.says("Answer with the summary alone."), "names no place"},
	} {
		m := toy()
		answer(m, c.talk)
		if got := strings.Join(m.Problems(), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
	}
}

// Faults are given once each and in order, to the step and not to what mends it.
func TestFaults(t *testing.T) {
	m := toy()
	var given []job.Fault
	m.Given = func(f job.Fault) { given = append(given, f) }
	at := talk{}.says("Follow the plan main.").called("main-1-0-1", "files", "main-1-0-2", "")
	var got []string
	for range 4 {
		got = append(got, answer(m, at))
	}
	if d := cmp.Diff([]string{"429", "529", "main-2-0-1 run", "main-2-0-1 run"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]job.Fault{job.RateLimited, job.Overloaded}, given); d != "" {
		t.Error(d)
	}
	if faults, long, _ := m.Met(); faults[job.RateLimited] != 1 || faults[job.Overloaded] != 1 || long != 0 {
		t.Errorf("met %v, %d too long", faults, long)
	}
	if reached, all := m.Progress(); reached != 2 || all != 4 {
		t.Errorf("reached %d of %d", reached, all)
	}
}

// A request above the window is refused in its provider's words, before anything else
// is looked at.
func TestWindow(t *testing.T) {
	m := toy()
	m.Job.Window = 300
	long := talk{}.says("Follow the plan main. " + strings.Repeat("x", 300))
	for path, words := range map[string]string{
		"/v1/messages": "prompt is too long", "/v1/responses": "context window", "/v1/chat/completions": "maximum context length", "/v1beta/models/m:streamGenerateContent": "input token count",
	} {
		r := long.request()
		r.Path = path
		if reply := m.Answer(r); reply.Status != 400 || !strings.Contains(reply.Message, words) {
			t.Errorf("%s: got %d %q, want reply.Status = 400 and strings.Contains(reply.Message, words)",
				path, reply.Status, reply.Message)
		}
	}
	if _, n, _ := m.Met(); n != 4 {
		t.Errorf("%d refused", n)
	}
	if got := answer(m, talk{}.says("Follow the plan side.")); got != "side-1-0-1 other" {
		t.Errorf("a request that fits got %q", got)
	}
}

// Variables of a call's input: its own id, and the newest output that was kept.
func TestVariables(t *testing.T) {
	m := toy()
	m.Job.Plans["main"][2].Calls[0].Input = map[string]any{"of": "$ARTIFACT", "by": `echo "$ID"`}
	r := m.Answer(talk{}.says("Follow the plan main.").called("main-1-0-1", "cmd-1700000000001.txt and cmd-1700000000003.txt", "main-1-0-2", "").called("main-2-0-1", "ran, see cmd-1700000000002.txt").request())
	if got := string(r.Blocks[len(r.Blocks)-1]); !strings.Contains(got, `{"by":"echo \"main-3-0-1\"","of":"cmd-1700000000003.txt"}`) {
		t.Error(got)
	}
}

// Each request begins with the one before, also after a restart. What a truncation
// leaves is another conversation.
func TestARequestGoesOn(t *testing.T) {
	begun := talk{}.says("Follow the plan main.")
	first := begun.called("main-1-0-1", "files", "main-1-0-2", "x")
	for _, c := range []struct {
		name        string
		then        talk
		refused, ok bool
	}{
		{"the same again", first, false, true},
		{"more words", first.says("and"), false, true},
		{"the next step", first.called("main-2-0-1", "ran"), false, true},
		{"another result", begun.called("main-1-0-1", "other files", "main-1-0-2", "x"), false, false},
		{"other words", talk{}.says("Now: Follow the plan main.").called("main-1-0-1", "files", "main-1-0-2", "x"), false, false},
		{"less", begun, false, false},
		{"less, because it was too long", begun, true, true},
	} {
		m := toy()
		answer(m, first)
		if c.refused {
			m.Job.Window = 300
			answer(m, talk{}.says("Follow the plan main. "+strings.Repeat("x", 300)))
		}
		answer(m, c.then)
		if p := m.Problems(); (len(p) == 0) != c.ok {
			t.Errorf("%s: got %v, want (len(p) == 0) = c.ok", c.name, p)
		}
	}
}

func TestUnusedTools(t *testing.T) {
	m := toy()
	body := `{"tools":[{"name":"list"},{"name":"spare"},{"name":"mcp--a--b"},{"name":"end"}],"messages":[{"role":"user","content":"Follow the plan main."}]}`
	m.Answer(llmtest.Request{Path: "/v1/messages", Body: []byte(body)})
	if d := cmp.Diff([]string{"spare"}, m.Unused()); d != "" {
		t.Error(d)
	}
}
