package roofmt

import (
	"bytes"
	"cmp"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
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

// CLIOrigin is the origin of tasks that a tool without an editor made.
const CLIOrigin = "cli"

// PlaceOrigin infers the origin of a task from its folder's path: Roo's command line tool has its own storage.
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

// toolOfPath finds the extension's folder name in a path: in the given one, or else in the path after links.
func toolOfPath(path string) Tool {
	tool := signInPath(path)
	if tool == UnknownTool {
		tool = signInPath(inputfile.Resolved(path))
	}
	return tool
}

func signInPath(path string) Tool {
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
			return m.tool
		}
	}
	return UnknownTool
}

// looked is the number of messages at either end of a list that are read: a row that shows the tool may come late.
const looked = 64

// inferTool returns the tool that wrote a folder, by its path or its content: no file names it.
func inferTool(f *Folder) Tool {
	if tool := toolOfPath(f.Dir); tool != UnknownTool { // reading messages again costs more than all else
		return tool
	}
	for raw := range f.UI.ends() {
		if tool := toolOfRow(raw); tool != UnknownTool {
			return tool
		}
	}
	return toolOfFiles(f)
}

// ends yields the first and the last messages: the signs of a tool are at the start, and another tool may have
// continued the task later. The bytes are valid during the step.
func (d *Document) ends() func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(d.Spans); i++ {
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

// kinds are the kinds of rows that only one of the tools writes.
var kinds = map[string]Tool{
	"ask:plan_mode_response": Cline, "ask:plan_mode_respond": Cline, "say:task": Cline, "say:checkpoint_created": Cline,
	"say:task_progress":    Cline,
	"say:checkpoint_saved": Roo, "say:condense_context": Roo, "say:sliding_window_truncation": Roo, "say:subtask_result": Roo,
	"say:user_edit_todos": Roo, "say:codebase_search_result": Roo,
}

// toolOfRow recognizes the spellings in which Cline and Roo differ. It reads a row once: rows may be large and many.
func toolOfRow(raw []byte) Tool {
	var say, ask string
	var sign Tool // by the members
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
			if sign != Cline {
				sign = cmp.Or(signs[string(key)], sign)
			}
		}
	}
	if tool := cmp.Or(kinds["ask:"+ask], kinds["say:"+say], sign); tool != UnknownTool {
		return tool
	}
	if say == "api_req_started" && bytes.Contains(text, []byte(`"apiProtocol`)) {
		if inner, err := esjson.Unquote(text); err == nil && strings.Contains(inner, `"apiProtocol"`) {
			return Roo
		}
	}
	return UnknownTool
}

func toolOfFiles(f *Folder) Tool {
	for _, o := range f.Others {
		if o.Name == ContextName {
			return Cline
		}
	}
	if strings.HasSuffix(f.API.Source, transcriptEnd) {
		return Cline
	}
	if f.Item != nil {
		return Roo
	}
	if list, ok := esjson.Get(f.Metadata, "files_in_context"); ok {
		for e := range esjson.Array(list) {
			if _, ok := esjson.Get(e, "cline_read_date"); ok {
				return Cline
			}
			if _, ok := esjson.Get(e, "roo_read_date"); ok {
				return Roo
			}
		}
	}
	return UnknownTool
}
