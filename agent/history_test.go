package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// kinds are the rows of the person's side, in order.
func kinds(s *task.State) []string {
	var out []string
	for _, m := range s.UI() {
		out = append(out, m.Kind())
	}
	return out
}

// result is what the model was told of a call: the text of its result block.
func result(t *testing.T, s *task.State, id string) string {
	t.Helper()
	c := s.Call(id)
	if c == nil || c.Finished == nil {
		t.Fatalf("call %s has no outcome", id)
	}
	raw, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// outcomes are the outcomes of a task's calls, completions aside.
func outcomes(s *task.State) []string {
	var out []string
	for _, c := range s.Calls() {
		switch {
		case c.Name == "attempt_completion":
		case c.Finished == nil:
			out = append(out, c.ID+" open")
		default:
			out = append(out, c.ID+" "+c.Finished.Outcome)
		}
	}
	return out
}

// checkHistories holds a task that has come to rest against what must be true of
// every task: each call of a reply but the last has one result, right after it;
// each effect has one row; the person's words stand on both sides; no row is left
// half shown; time stamps rise.
func checkHistories(t *testing.T, s *task.State) {
	t.Helper()
	var open []string
	for i, m := range s.API() {
		content, _ := esjson.Get(m.Raw(), "content")
		var calls, results []string
		for b := range esjson.Array(content) {
			switch typ, _ := esjson.GetString(b, "type"); typ {
			case "tool_use":
				id, _ := esjson.GetString(b, "id")
				calls = append(calls, id)
			case "tool_result":
				id, _ := esjson.GetString(b, "tool_use_id")
				results = append(results, id)
			case "text":
				text, _ := esjson.GetString(b, "text")
				said := strings.TrimSuffix(strings.TrimPrefix(text, "<user_message>\n"), "\n</user_message>")
				if m.Kind() == "user" && said != text && !shows(s, said) {
					t.Errorf("message %d says %q for the person, and no row shows it", i, said)
				}
			}
		}
		if !slices.Equal(results, open) {
			t.Errorf("message %d has the results %v, the calls before it are %v", i, results, open)
		}
		open = calls
	}
	last := int64(0)
	for i, m := range s.UI() {
		if m.Partial() {
			t.Errorf("row %d is still partial: %s", i, m.Raw())
		}
		if m.TS() <= last {
			t.Errorf("row %d has the time %d after %d", i, m.TS(), last)
		}
		last = m.TS()
	}
	rows := map[uint64]string{}
	for _, c := range s.Calls() {
		if !c.Started {
			continue
		}
		m := s.Message(c.UI)
		if m == nil || m.Hidden != "" {
			t.Errorf("call %s ran, and no row shows it", c.ID)
		} else if other := rows[c.UI]; other != "" {
			t.Errorf("the calls %s and %s share a row", other, c.ID)
		}
		rows[c.UI] = c.ID
	}
	for _, m := range s.UI() {
		if k := m.Kind(); (k == "ask:tool" || k == "ask:command") && rows[m.ID] == "" && !denied(s, m) {
			t.Errorf("the row %s shows a call that nothing came of", m.Raw())
		}
	}
}

// denied reports whether a row is that of a call that was refused or is open.
func denied(s *task.State, m *task.Message) bool {
	for _, c := range s.Calls() {
		if c.Finished == nil || c.Finished.Outcome == "denied" {
			return true
		}
	}
	return m.Foreign
}

// shows reports whether a row of the person's side holds the words.
func shows(s *task.State, words string) bool {
	return slices.ContainsFunc(s.UI(), func(m *task.Message) bool { return m.Text() == words })
}
