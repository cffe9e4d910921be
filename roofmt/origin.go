package roofmt

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// Tool names the program that wrote a task.
type Tool string

// The known writers. UnknownTool is the zero value.
const (
	UnknownTool Tool = ""
	Roo         Tool = "roo"
	Cline       Tool = "cline"
	Zoo         Tool = "zoo"
	Kilo        Tool = "kilo"
)

// Origin is what path and content show of the writer. It is always inferred: nothing in the files names it.
type Origin struct {
	Tool     Tool
	Era      string // of a folder that Read has read: "claude-dev" (2024), "xml" (tools as text), "native" (tool_use blocks), "" when no message shows it
	Inferred bool   // true whenever Tool or Era is set
	Evidence string // the sign that decided
}

// CLIOrigin is the origin of tasks that a tool without an editor made.
const CLIOrigin = "cli"

// PlaceOrigin infers from a folder's path how its task was begun: Roo's command line tool has a storage of its own.
func PlaceOrigin(dir string) string {
	if strings.Contains(filepath.ToSlash(dir)+"/", "/.vscode-mock/") {
		return CLIOrigin
	}
	return "extension"
}

// SaidOrigin returns the origin that the item of a Cline session names; "" when the item names none, or an editor.
func SaidOrigin(item []byte) string {
	switch said := esjson.TextOf(item, "source"); said {
	case CLIOrigin, "api", "web":
		return said
	}
	return ""
}

// toolOfPath finds the extension's folder name in a path: in the given one, or else in the one that its links lead to.
func toolOfPath(path string) (Tool, string) {
	tool, sign := signInPath(path)
	if tool == UnknownTool {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return signInPath(real)
		}
	}
	return tool, sign
}

func signInPath(path string) (Tool, string) {
	p := strings.ToLower(filepath.ToSlash(path))
	for _, m := range [...]struct {
		sign string
		tool Tool
	}{
		{"wecode-ai.zoo-code", Zoo}, {"/.zoo-code/", Zoo}, {"zoocodeorganization.zoo-code", Zoo},
		{"kilocode.kilo-code", Kilo},
		{"rooveterinaryinc.roo-", Roo}, {"roo-code.roo-cline", Roo}, {"/.vscode-mock/", Roo}, {"/.roo/", Roo},
		{"/.roocode/", Roo}, {"/.agentz/", Roo},
		{"saoudrizwan.", Cline}, {"/.cline/", Cline},
	} {
		if strings.Contains(p+"/", m.sign) {
			return m.tool, "path: " + strings.Trim(m.sign, "/")
		}
	}
	return UnknownTool, ""
}

// looked is how many messages at either end of a list are read: a row that shows the tool may come late, the form of
// tool calls shows in the first replies.
const (
	looked    = 64
	lookedAPI = 8
)

// inferOrigin infers the era only when the caller wants it: that reads messages a second time.
func inferOrigin(f *Folder, era bool) Origin {
	var o Origin
	o.Tool, o.Evidence = toolOfPath(f.Dir)
	ui, xml, native := "", false, false
	var tool Tool
	if o.Tool == UnknownTool { // reading messages again costs more than all else
		for raw := range f.UI.ends(looked) {
			if tool, ui = toolOfRow(raw); tool != UnknownTool {
				break
			}
		}
	}
	n := lookedAPI
	if !era {
		n = 0
	}
	for raw := range f.API.ends(n) {
		m := APIMessage(raw)
		if len(m.ToolUses()) > 0 || len(m.ToolResults()) > 0 {
			native = true
			break
		}
		if m.Role() == "assistant" && strings.Contains(m.Text(), "</") {
			xml = true
		}
	}
	if o.Tool == UnknownTool {
		o.Tool, o.Evidence = tool, ui
	}
	if o.Tool == UnknownTool {
		o.Tool, o.Evidence = toolOfFiles(f)
	}
	switch {
	case f.UI.Source == LegacyName || f.API.Source == LegacyName:
		o.Era = "claude-dev"
	case native:
		o.Era = "native"
	case xml:
		o.Era = "xml"
	}
	o.Inferred = o.Tool != UnknownTool || o.Era != ""
	return o
}

// ends yields the first and the last messages: signs are at the start, and another tool may have continued the task
// later. The bytes are valid during the step.
func (d *Document) ends(looked int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(d.Spans) && looked > 0; i++ {
			if i == looked && len(d.Spans) > 2*looked {
				i = len(d.Spans) - looked
			}
			more := false
			if d.file == nil || lookAt(d.file, d.Spans[i], func(raw []byte) { more = yield(raw) }) != nil || !more {
				return
			}
		}
	}
}

// signs are the members that only one of the tools writes.
var signs = map[string]Tool{
	"conversationHistoryIndex": Cline, "lastCheckpointHash": Cline, "conversationHistoryDeletedRange": Cline, "modelInfo": Cline,
	"isProtected": Roo, "isAnswered": Roo, "progressStatus": Roo, "contextCondense": Roo, "checkpoint": Roo,
}

// toolOfRow recognises the spellings in which Cline and Roo differ. It reads a row once: rows may be large and many.
func toolOfRow(raw []byte) (Tool, string) {
	var say, ask, cline, roo string
	var text []byte
	for key, val := range esjson.Fields(raw) {
		switch string(key) {
		case "say":
			say, _ = esjson.Unquote(val)
		case "ask":
			ask, _ = esjson.Unquote(val)
		case "text":
			text = val
		default:
			switch signs[string(key)] {
			case Cline:
				cline = string(key)
			case Roo:
				roo = string(key)
			}
		}
	}
	switch {
	case say == "task" || say == "checkpoint_created" || say == "task_progress" || ask == "plan_mode_response" ||
		ask == "plan_mode_respond":
		return Cline, "row: " + say + ask
	case say == "checkpoint_saved" || say == "condense_context" || say == "sliding_window_truncation" ||
		say == "subtask_result" || say == "user_edit_todos" || say == "codebase_search_result":
		return Roo, "row: " + say
	case cline != "":
		return Cline, "key: " + cline
	case roo != "":
		return Roo, "key: " + roo
	}
	if say == "api_req_started" && bytes.Contains(text, []byte(`"apiProtocol`)) {
		if inner, err := esjson.Unquote(text); err == nil && strings.Contains(inner, `"apiProtocol"`) {
			return Roo, "key: apiProtocol"
		}
	}
	return UnknownTool, ""
}

func toolOfFiles(f *Folder) (Tool, string) {
	for _, o := range f.Others {
		if o.Name == ContextName {
			return Cline, "file: " + ContextName
		}
	}
	if strings.HasSuffix(f.API.Source, transcriptEnd) {
		return Cline, "file: " + f.API.Source
	}
	if f.Item != nil {
		return Roo, "file: " + ItemName
	}
	if list, ok := esjson.Get(f.Metadata, "files_in_context"); ok {
		for e := range esjson.Array(list) {
			if _, ok := esjson.Get(e, "cline_read_date"); ok {
				return Cline, "key: cline_read_date"
			}
			if _, ok := esjson.Get(e, "roo_read_date"); ok {
				return Roo, "key: roo_read_date"
			}
		}
	}
	return UnknownTool, ""
}
