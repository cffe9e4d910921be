package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// UIFromAPI reconstructs a missing user's history from the model's history. Each row has "inferred":true. The cost of
// requests is lost, and so are questions between the messages.
func UIFromAPI(messages [][]byte) [][]byte {
	m := uiMaker{results: map[string][]byte{}, names: map[string]string{}}
	for _, raw := range messages {
		for block := range blocksOf(raw) {
			if str(block, "type") == "tool_result" {
				m.results[str(block, "tool_use_id")] = block
			}
		}
	}
	for _, raw := range messages {
		if isObject(raw) {
			m.message(raw)
		}
	}
	return m.rows
}

type uiMaker struct {
	rows    [][]byte
	ts      int64
	results map[string][]byte // by call
	names   map[string]string // tools by call
	said    bool              // the first message of the user was added
}

// row adds a row.
func (m *uiMaker) row(typ, kind, text string, images ...string) {
	var list []byte
	if len(images) > 0 {
		list = esjson.Strings(images)
	}
	m.rows = append(m.rows, esjson.ObjectOf("ts", m.ts, "type", typ, typ, kind, "text", esjson.Given(text), "images", list,
		"inferred", true))
}

func (m *uiMaker) message(raw []byte) {
	if ts, ok := esjson.GetInt(raw, "ts"); ok {
		m.ts = ts
	}
	if esjson.IsTrue(raw, "isSummary") {
		m.rows = append(m.rows, esjson.ObjectOf("ts", m.ts, "type", "say", "say", "condense_context",
			"contextCondense", esjson.ObjectOf("summary", plainText(raw)), "inferred", true))
		return
	}
	if esjson.IsTrue(raw, "isTruncationMarker") && str(raw, "role") == "user" { // a reply with the marker is a reply
		m.row("say", "sliding_window_truncation", "")
		return
	}
	if str(raw, "role") == "user" {
		m.user(raw)
		return
	}
	for block := range blocksOf(raw) {
		m.assistant(block)
	}
}

// user adds the user's text, and the results that the user saw.
func (m *uiMaker) user(raw []byte) {
	var words, images, output []string
	for block := range blocksOf(raw) {
		switch str(block, "type") {
		case "text":
			text := str(block, "text")
			inner, own := roofmt.UsersWords(text)
			switch {
			case xmlResult(text):
				_, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
				output = append(output, strings.TrimSpace(untagged(body)))
			case inner == "":
			case len(output) > 0 && !own: // more output follows
				output = append(output, inner)
			default:
				words = append(words, inner)
			}
		case "image":
			if url := dataURL(block); url != "" {
				images = append(images, url)
			}
		case "tool_result":
			m.result(block)
		default:
			m.row("say", "unknown "+str(block, "type"), string(block))
		}
	}
	if len(output) > 0 {
		m.row("say", "command_output", strings.TrimSpace(strings.Join(output, "\n")))
	}
	if len(words)+len(images) == 0 {
		return
	}
	kind := "user_feedback"
	if !m.said {
		kind = "text"
	}
	m.said = true
	m.row("say", kind, strings.Join(words, "\n\n"), images...)
}

func (m *uiMaker) result(block []byte) {
	text, _ := ResultText(block)
	switch name := m.names[str(block, "tool_use_id")]; {
	case name == "execute_command":
		m.row("say", "command_output", text)
	case esjson.IsTrue(block, "is_error"):
		m.row("say", "error", text)
	case name == "ask_followup_question":
		words, _ := roofmt.UsersWords(text)
		m.row("say", "user_feedback", words)
	case name == "new_task":
		m.row("say", "subtask_result", text)
	case strings.HasPrefix(name, "mcp--"), name == "use_mcp_tool", name == "access_mcp_resource":
		m.row("say", "mcp_server_response", text)
	case ownShape(block): // Roo has no row for such a result
		m.row("say", "command_output", text)
	}
}

// ownShape reports whether a result has a form that Roo does not write.
func ownShape(block []byte) bool {
	for part := range esjson.Array(esjson.Member(block, "content")) {
		if esjson.TypeOf(part) != esjson.TypeObject {
			return true
		}
		if kind := str(part, "type"); kind != "text" && kind != "image" {
			return true
		}
	}
	return false
}

func (m *uiMaker) assistant(block []byte) {
	switch str(block, "type") {
	case "text":
		m.words(str(block, "text"))
	case "thinking":
		m.row("say", "reasoning", str(block, "thinking"))
	case "reasoning":
		if text := str(block, "text"); text != "" {
			m.row("say", "reasoning", text)
		}
	case "redacted_thinking", "thoughtSignature": // not for people
	case "tool_use":
		m.call(block)
	default:
		m.row("say", "unknown "+str(block, "type"), string(block))
	}
}

// words adds text of a model, which may hold calls in tags.
func (m *uiMaker) words(text string) {
	for _, p := range pieces(text) {
		switch p.tag {
		case "":
			m.row("say", "text", p.text)
		case "thinking":
			m.row("say", "reasoning", strings.TrimSpace(p.text))
		default:
			var input []any
			for _, one := range tagParams(p.text) {
				input = append(input, one.name, one.text)
			}
			m.call(esjson.ObjectOf("name", p.tag, "input", esjson.ObjectOf(input...)))
		}
	}
}

// call adds the row that asks for a tool call.
func (m *uiMaker) call(block []byte) {
	id, name := str(block, "id"), str(block, "name")
	m.names[id] = name
	input := inner(block, "input")
	switch name {
	case "execute_command":
		m.row("ask", "command", str(input, "command"))
	case "plan_mode_respond":
		m.row("ask", "plan_mode_respond", str(input, "response"))
	case "attempt_completion":
		m.row("say", "completion_result", str(input, "result"))
		m.row("ask", "completion_result", "")
	case "ask_followup_question":
		m.row("ask", "followup", string(esjson.ObjectOf("question", str(input, "question"))))
	case "use_mcp_tool", "access_mcp_resource":
		m.row("ask", "use_mcp_server", string(esjson.ObjectOf("type", name, "serverName", str(input, "server_name"),
			"toolName", str(input, "tool_name"), "uri", str(input, "uri"))))
	default:
		m.row("ask", "tool", m.toolText(id, name, input))
	}
}

func (m *uiMaker) toolText(id, name string, input []byte) string {
	if row, path, content, ok := editRow(name, input); ok {
		return string(esjson.ObjectOf("tool", row, "path", esjson.Given(path), "content", esjson.Given(content)))
	}
	row, ok := rowTools[name]
	switch {
	case name == "replace_in_file": // other tools use its row, too
		row = "editedExistingFile"
	case !ok:
		row = name
	}
	members := []any{"tool", row}
	for _, key := range []string{"path", "regex", "query", "command", "skill", "reason"} {
		members = append(members, key, esjson.Given(str(input, key)))
	}
	if paths := pathsIn(string(esjson.Member(input, "files"))); str(input, "path") == "" && len(paths) > 0 {
		members = append(members, "path", strings.Join(paths, ", "))
	}
	members = append(members, "mode", esjson.Given(str(input, "mode_slug")+str(input, "mode")))
	text := str(input, "diff")
	switch name {
	case "write_to_file":
		text = str(input, "content")
	case "new_task":
		text = str(input, "message")
	case "update_todo_list":
		members = append(members, "todos", str(input, "todos"))
	case "list_files", "search_files", "list_code_definition_names":
		text, _ = ResultText(m.results[id])
	}
	return string(esjson.ObjectOf(append(members, "content", esjson.Given(text))...))
}

// APIFromUI reconstructs a missing model's history from the user's history: text, reasoning, calls and the output of
// commands. Each message has "inferred":true. The result is for reading only: the rows do not hold the real results
// of tools, and unknown results are marked as such.
func APIFromUI(rows [][]byte) [][]byte {
	m := apiMaker{results: map[string][]byte{}}
	for i, raw := range rows {
		if isObject(raw) {
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
	results  map[string][]byte // the known results; many rows may hold the output of one command
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
		m.blocks = append(m.blocks, esjson.ObjectOf("type", "reasoning", "text", text, "summary", []byte("[]")))
	case "ask:command", "say:command":
		m.call(i, ts, "execute_command", esjson.ObjectOf("command", text))
	case "say:completion_result":
		m.call(i, ts, "attempt_completion", esjson.ObjectOf("result", text))
	case "ask:followup":
		question, _, _ := followup(text)
		m.call(i, ts, "ask_followup_question", esjson.ObjectOf("question", question))
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

// apiTool returns the tool whose rows have a name.
func apiTool(row string) string {
	for tool, name := range rowTools {
		if name == row {
			return tool
		}
	}
	return row
}

// turn begins a message of a role, unless the current message has that role. Before the model continues, turn answers the
// model's calls; text of the user follows the answers in the same message.
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

// call adds a tool call to the model's message. The rows do not show whether one reply made two calls, so each call is in a
// message of its own, with the text before it.
func (m *apiMaker) call(i int, ts int64, name string, input []byte) {
	m.turn("assistant", ts)
	if !isObject(input) {
		input = []byte("{}")
	}
	id := fmt.Sprintf("row_%d", i+1)
	m.blocks = append(m.blocks, esjson.ObjectOf("type", "tool_use", "id", id, "name", name, "input", input))
	m.open = append(m.open, id)
}

// flush ends the current message and answers its calls.
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
		text := cmp.Or(string(m.results[id]), "(the result is not known)")
		m.blocks = append(m.blocks, esjson.ObjectOf("type", "tool_result", "tool_use_id", id, "content", text))
	}
	m.open = nil
}

func (m *apiMaker) text(text string) {
	if text != "" {
		m.blocks = append(m.blocks, esjson.ObjectOf("type", "text", "text", text))
	}
}

func (m *apiMaker) image(url string) {
	head, data, ok := strings.Cut(url, ",")
	if !ok {
		m.text("[image " + url + "]")
		return
	}
	media, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
	m.blocks = append(m.blocks, esjson.ObjectOf("type", "image",
		"source", esjson.ObjectOf("type", "base64", "media_type", media, "data", data)))
}

// end closes the current message.
func (m *apiMaker) end() {
	if len(m.blocks) > 0 {
		m.messages = append(m.messages, esjson.ObjectOf("role", m.role, "content", esjson.List(m.blocks), "ts", m.ts, "inferred", true))
	}
	m.role, m.blocks = "", nil
}

// editRow returns the row of a call that changes files by replacing text or by a patch. content is the change as a
// diff; ok is false for other calls.
func editRow(name string, input []byte) (row, path, content string, ok bool) {
	switch name {
	case "edit", "edit_file", "search_replace":
		row = "appliedDiff"
	case "search_and_replace":
		row = rowTools[name]
	case "apply_patch":
		path, created := patched(str(input, "patch") + str(input, "input"))
		if row = "appliedDiff"; created {
			row = "newFileCreated"
		}
		return row, path, str(input, "patch") + str(input, "input"), true
	default:
		return "", "", "", false
	}
	path = cmp.Or(str(input, "file_path"), str(input, "path"))
	steps := [][]byte{input}
	if list, _ := esjson.Get(input, "operations"); esjson.TypeOf(list) == esjson.TypeArray {
		steps = slices.Collect(objects(esjson.Array(list)))
	}
	var parts []string
	for _, step := range steps {
		before, after := "", ""
		for _, names := range replacing {
			before, after = before+str(step, names[0]), after+str(step, names[1])
		}
		if name == "edit_file" && before == "" {
			return "newFileCreated", path, after, true
		}
		if diff := replaced(before, after); diff != "" {
			parts = append(parts, "@@ @@\n"+diff)
		}
	}
	return row, path, strings.Join(parts, ""), true
}

// patched returns the files that a patch names, and whether the patch only creates one file.
func patched(patch string) (paths string, created bool) {
	var names []string
	made := 0
	for line := range strings.SplitSeq(unixEnds(patch), "\n") {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok {
				names = append(names, strings.TrimSpace(path))
				if strings.Contains(head, "Add") {
					made++
				}
			}
		}
	}
	return strings.Join(names, ", "), made == 1 && len(names) == 1
}
