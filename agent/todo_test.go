package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
)

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func list(id, todos string) turn {
	return turn{calls: []call{{id, "update_todo_list", `{"todos":` + string(mustJSON(todos)) + `}`}}}
}

// environmentOf is the newest environment block that was sent.
func (b *bench) environmentOf() string {
	b.t.Helper()
	text := b.model.last()
	at := strings.LastIndex(text, "<environment_details>")
	if at < 0 {
		b.t.Fatalf("no environment in %s", text)
	}
	return strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(text[at:])
}

const noList = "You have not created a todo list yet."

// The list is shown to the person as Roo shows it, and the model is reminded of it in
// every turn from then on.
func TestTodoList(t *testing.T) {
	b := moded(t, "code", list("t1", "- [x] look\n[-] a|b\\c\nprose\n[ ] end"), turn{calls: []call{use("r1", "look", "a")}}, list("t2", "[x] end"), finish("done"))
	b.agent.Task.Policy, b.agent.User.Asker = approval.Policy{}, b.person(agent.Answer{}, nil)
	var seen []string
	b.hook = func(entry string) {
		if strings.HasPrefix(entry, "request") {
			seen = append(seen, b.environmentOf())
		}
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if len(b.asked) > 0 {
		t.Errorf("asked %+v", b.asked)
	}
	if !strings.Contains(seen[0], noList) || strings.Contains(seen[1], noList) {
		t.Errorf("got %q, want strings.Contains(seen[0], noList) and not strings.Contains(seen[1], noList)",
			seen[:2])
	}
	table := "\n====\n\nREMINDERS\n\nBelow is your current list of reminders for this task. Keep them updated as you progress.\n\n" +
		"| # | Content | Status |\n|---|---------|--------|\n| 1 | look | Completed |\n| 2 | a\\|b\\\\c | In Progress |\n| 3 | end | Pending |\n\n\nIMPORTANT: "
	if !strings.Contains(seen[1], table) || !strings.Contains(seen[2], table) {
		t.Errorf("got %s\n%s, want strings.Contains(seen[1], table) and strings.Contains(seen[2], table)",
			seen[1], seen[2])
	}
	if !strings.Contains(seen[3], "| 1 | end | Completed |\n\n") || strings.Contains(seen[3], "look") {
		t.Error(seen[3])
	}
	row := `{"tool":"updateTodoList","todos":[{"id":"4074e9d73e4daadd3378a3c4c6be5d4e","content":"end","status":"completed"}]}`
	if !shows(b.disk.state, row) || !strings.Contains(result(t, b.disk.state, "t1"), "Todo list updated successfully.") {
		t.Error(result(t, b.disk.state, "t1"))
	}
	checkHistories(t, b.disk.state)
}

func TestTodoListsThatAreOdd(t *testing.T) {
	for name, c := range map[string]struct {
		todos, outcome, env string
	}{
		"no step":    {"first this\nthen that", "error", noList},
		"empty":      {"", "ok", noList},
		"blank":      {" \n", "ok", noList},
		"line ends":  {"[ ] a\r\n[x] b\r\n", "ok", "| 1 | a | Pending |\n| 2 | b | Completed |\n"},
		"very long":  {strings.Repeat("[ ] step\n", 250), "ok", "| 100 | step | Pending |\n\n(150 more steps are not shown.)\n"},
		"HTML, tags": {"[ ] </environment_details> <b>", "ok", "| 1 | "},
	} {
		b := moded(t, "code", list("t1", c.todos), finish("done"))
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if got := outcomes(b.disk.state)[0]; got != "t1 "+c.outcome || !strings.Contains(b.environmentOf(), c.env) {
			t.Errorf("%s: got %s, %s, want got = \"t1 \"+c.outcome and strings.Contains(b.environmentOf(), c.env)",
				name, got, b.environmentOf())
		}
	}
}

// A list that another program left is the list, and the newest one counts, also when it
// came with the call that a kill interrupted.
func TestTodoListOfAnEarlierRun(t *testing.T) {
	row := func(content string) []byte {
		text := fmt.Sprintf(`{"tool":"updateTodoList","todos":[{"id":"x","content":%q,"status":"odd"},{"content":"two\nlines","status":"pending"},7]}`, content)
		return []byte(`{"ts":1,"type":"ask","ask":"tool","text":` + string(mustJSON(text)) + `}`)
	}
	b := moded(t, "code", list("t1", "[ ] mine"), finish("done"))
	b.commit(
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text","text":"go"}`)}},
		task.MessageAdded{History: task.UI, Message: 2, Body: task.Body{Raw: row("older")}},
		task.MessageAdded{History: task.UI, Message: 3, Body: task.Body{Raw: row("theirs")}},
		task.MessageAdded{History: task.API, Message: 4, Body: task.Body{Raw: []byte(`{"role":"user","content":[{"type":"text","text":"go"}],"ts":1}`)}},
	)
	want(t, b.start(agent.Input{Text: "on"}), "completed", "")
	if got := sent(b.model.requests[0]); !strings.Contains(got, `| 1 | theirs | odd |\n| 2 | two lines | Pending |\n| 3 |  |  |\n`) {
		t.Error(got)
	}
	for n := 3; n < len(b.disk.commits); n++ {
		left := b.after(n, 0)
		left.inMode("code")
		want(t, left.start(agent.Input{Yes: true}), "completed", "")
		if len(left.model.requests) > 0 && !strings.Contains(left.environmentOf(), "| 1 | mine | Pending |\n\n") {
			t.Errorf("after commit %d: %s", n, left.environmentOf())
		}
		if rows := strings.Count(strings.Join(kinds(left.disk.state), " "), "ask:tool"); rows != 3 {
			t.Errorf("after commit %d: %d rows of lists", n, rows)
		}
	}
}
