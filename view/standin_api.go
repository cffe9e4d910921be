package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// APIFromUI reconstructs the messages of the model's history from the rows that the user saw: text, reasoning, calls and
// the output of commands. It replaces a missing history; each message has "inferred":true. It is for reading only:
// the rows do not hold the real results of tools, and unknown results are marked as such.
func APIFromUI(rows [][]byte) [][]byte {
	m := apiMaker{}
	for i, raw := range rows {
		if esjson.TypeOf(raw) == esjson.TypeObject && esjson.Valid(raw) {
			m.row(raw, i)
		}
	}
	m.flush()
	return m.messages
}

type apiMaker struct {
	messages [][]byte
	role     string
	ts       int64
	blocks   [][]byte
	open     []string          // calls of the message before the current one that have no result
	results  map[string][]byte // the known ones; those of a command come in many rows
}

func (m *apiMaker) row(raw []byte, i int) {
	typ := str(raw, "type")
	kind, text := typ+":"+str(raw, typ), str(raw, "text")
	ts, _ := esjson.GetInt(raw, "ts")
	switch kind {
	case "say:text", "say:task", "say:user_feedback":
		role := "assistant"
		if i == 0 || kind != "say:text" {
			role = "user"
		}
		images := slices.DeleteFunc(addresses(raw), func(a string) bool { return a == "" })
		if text == "" && len(images) == 0 {
			return
		}
		m.turn(role, ts)
		m.text(text)
		for _, url := range images {
			m.image(url)
		}
	case "say:reasoning":
		m.turn("assistant", ts)
		var o esjson.Object
		o.String("type", "reasoning")
		o.String("text", text)
		o.Raw("summary", []byte("[]"))
		m.blocks = append(m.blocks, o.Bytes())
	case "ask:command", "say:command":
		m.call(i, ts, "execute_command", one("command", text))
	case "say:completion_result":
		m.call(i, ts, "attempt_completion", one("result", text))
	case "ask:followup":
		question, _, _ := followup(text)
		m.call(i, ts, "ask_followup_question", one("question", question))
	case "ask:use_mcp_server", "say:use_mcp_server":
		m.call(i, ts, "use_mcp_tool", []byte(text))
	case "ask:tool", "say:tool":
		name := "tool"
		if inner, ok := object(text); ok {
			name = apiTool(str(inner, "tool"))
		}
		m.call(i, ts, name, []byte(text))
	case "say:command_output", "ask:command_output", "say:mcp_server_response", "say:subtask_result":
		if n := len(m.open); n > 0 && text != "" {
			id := m.open[n-1]
			m.results[id] = append(m.results[id], text...)
		}
	}
}

func one(key, text string) []byte {
	var o esjson.Object
	o.String(key, text)
	return o.Bytes()
}

// apiTool is the name of the tool that a row of this name shows.
func apiTool(row string) string {
	for tool, name := range rowTools {
		if name == row {
			return tool
		}
	}
	return row
}

// turn begins a message of a role, unless one is under way. It answers the calls of the model before the model
// continues; text of the user comes with the answers.
func (m *apiMaker) turn(role string, ts int64) {
	if role == m.role && (role == "user" || len(m.open) == 0) {
		return
	}
	m.end()
	if len(m.open) > 0 && role == "assistant" {
		m.role, m.ts = "user", ts
		m.answer()
		m.end()
	}
	m.role, m.ts = role, ts
	if role == "user" {
		m.answer()
	}
}

// call adds a tool call to the model's message. The rows do not show whether one reply made two calls, so each call gets
// its own message unless text came before it.
func (m *apiMaker) call(i int, ts int64, name string, input []byte) {
	m.turn("assistant", ts)
	if esjson.TypeOf(input) != esjson.TypeObject || !esjson.Valid(input) {
		input = []byte("{}")
	}
	id := fmt.Sprintf("row_%d", i+1)
	var o esjson.Object
	o.String("type", "tool_use")
	o.String("id", id)
	o.String("name", name)
	o.Raw("input", input)
	m.blocks = append(m.blocks, o.Bytes())
	m.open = append(m.open, id)
	if m.results == nil {
		m.results = map[string][]byte{}
	}
}

// flush ends the message under way and answers its calls.
func (m *apiMaker) flush() {
	m.end()
	if len(m.open) > 0 {
		if len(m.open) == 1 && len(m.results[m.open[0]]) == 0 && m.completes() {
			return // a completed task ends with the call that completes it
		}
		m.role = "user"
		m.answer()
		m.end()
	}
}

// completes reports whether the last message completes the task.
func (m *apiMaker) completes() bool {
	last := m.messages[len(m.messages)-1]
	return strings.Contains(string(last), `"name":"attempt_completion"`)
}

func (m *apiMaker) answer() {
	for _, id := range m.open {
		text := string(m.results[id])
		if text == "" {
			text = "(the result is not known)"
		}
		var o esjson.Object
		o.String("type", "tool_result")
		o.String("tool_use_id", id)
		o.String("content", text)
		m.blocks = append(m.blocks, o.Bytes())
	}
	m.open = nil
}

func (m *apiMaker) text(text string) {
	if text == "" {
		return
	}
	var o esjson.Object
	o.String("type", "text")
	o.String("text", text)
	m.blocks = append(m.blocks, o.Bytes())
}

func (m *apiMaker) image(url string) {
	head, data, ok := strings.Cut(url, ",")
	if !ok {
		m.text("[image " + url + "]")
		return
	}
	media, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
	var source, o esjson.Object
	source.String("type", "base64")
	source.String("media_type", media)
	source.String("data", data)
	o.String("type", "image")
	o.Raw("source", source.Bytes())
	m.blocks = append(m.blocks, o.Bytes())
}

// end closes the message under way.
func (m *apiMaker) end() {
	if len(m.blocks) > 0 {
		var o esjson.Object
		o.String("role", m.role)
		o.Raw("content", esjson.List(m.blocks))
		o.Int("ts", m.ts)
		o.Bool("inferred", true)
		m.messages = append(m.messages, o.Bytes())
	}
	m.role, m.blocks = "", nil
}
