package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// param is one member of a tool call's input. words means that text is prose of a model; else it is JSON.
type param struct {
	name, text string
	words      bool
}

// params are the members of an input. ok is false when it is not an object.
func params(input []byte) (list []param, ok bool) {
	if esjson.TypeOf(input) != esjson.TypeObject || !esjson.Valid(input) {
		return nil, false
	}
	for key, val := range esjson.Members(input) {
		if text, err := esjson.Unquote(val); err == nil {
			list = append(list, param{key, text, true})
		} else if string(val) != "null" {
			list = append(list, param{key, string(val), false})
		}
	}
	return list, true
}

// targets are the parameters that name the object of a call, the most specific first.
var targets = []string{"path", "file_path", "target_file", "command", "regex", "query", "url", "uri", "mode_slug", "mode",
	"skill", "action"}

// bodies are the parameters that hold the content of a call: their text needs no name.
var bodies = []string{"content", "result", "question", "message", "todos", "response", "text", "reason", "context"}

// call fills an item with a tool call: its object in the title, its change as a diff, other members one a line.
func call(it *Item, name string, list []param) {
	it.Title = name
	switch name {
	case "attempt_completion":
		it.Class = Result
	case "ask_followup_question", "plan_mode_respond":
		it.Class = Question
	}
	list = slices.Clone(list)
	if i := firstOf(list, targets); i >= 0 {
		it.Title += " " + list[i].text
		list = slices.Delete(list, i, i+1)
	} else if i := firstOf(list, []string{"files", "args"}); i >= 0 {
		if paths := pathsIn(list[i].text); len(paths) > 0 {
			it.Title += " " + strings.Join(paths, " ")
			list = slices.Delete(list, i, i+1)
		}
	}
	if i := firstOf(list, []string{"follow_up", "options"}); i >= 0 {
		if it.Choices = suggestions(list[i].text); len(it.Choices) > 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	var diff string
	if diff, list, it.Diff = changeOf(name, list); it.Diff {
		it.Body = strings.TrimPrefix(members(list)+"\n"+diff, "\n")
		return
	}
	if len(list) == 1 && list[0].words && slices.Contains(bodies, list[0].name) {
		it.Body = list[0].text
		return
	}
	it.Body = members(list)
}

func firstOf(list []param, names []string) int {
	for _, name := range names {
		if i := slices.IndexFunc(list, func(p param) bool { return p.name == name && strings.TrimSpace(p.text) != "" }); i >= 0 {
			return i
		}
	}
	return -1
}

// changeOf is the change of a call as a diff, and its other members.
func changeOf(name string, list []param) (diff string, rest []param, ok bool) {
	if i := firstOf(list, []string{"diff", "patch", "input"}); i >= 0 {
		if diff, ok := change(list[i].text); ok {
			return diff, slices.Delete(list, i, i+1), true
		}
	}
	for _, pair := range [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"search", "replace"}} {
		from := slices.IndexFunc(list, func(p param) bool { return p.name == pair[0] && p.words })
		to := slices.IndexFunc(list, func(p param) bool { return p.name == pair[1] && p.words })
		if from >= 0 && to >= 0 {
			diff := replaced(list[from].text, list[to].text)
			rest := slices.DeleteFunc(list, func(p param) bool { return p.name == pair[0] || p.name == pair[1] })
			return diff, rest, true
		}
	}
	if name == "write_to_file" || name == "insert_content" {
		if i := firstOf(list, []string{"content"}); i >= 0 {
			diff := added(list[i].text)
			rest := slices.DeleteFunc(list, func(p param) bool { return p.name == "content" || p.name == "line_count" })
			return diff, rest, true
		}
	}
	return "", list, false
}

// members writes parameters one a line, with text of many lines below its name.
func members(list []param) string {
	lines := make([]string, 0, len(list))
	for _, p := range list {
		text := p.text
		if !p.words {
			text = indented([]byte(text))
		}
		if text = strings.TrimRight(unixEnds(text), "\n"); strings.Contains(text, "\n") {
			text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
		sep := ": "
		if text == "" || text[0] == '\n' {
			sep = ":"
		}
		if p.name == "" { // prose between the tags of a call
			lines = append(lines, p.text)
			continue
		}
		lines = append(lines, p.name+sep+text)
	}
	return strings.Join(lines, "\n")
}

// indented is JSON for people: short values on one line, else a member a line.
func indented(raw []byte) string {
	var out bytes.Buffer
	if len(raw) < 80 || json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// pathsIn are the paths of a call that reads several files: JSON, or the tags of older versions.
func pathsIn(text string) (out []string) {
	raw := []byte(text)
	if esjson.TypeOf(raw) == esjson.TypeArray && esjson.Valid(raw) {
		for el := range esjson.Array(raw) {
			if path := str(el, "path"); esjson.TypeOf(el) == esjson.TypeObject && path != "" {
				out = append(out, path)
			}
		}
		return out
	}
	return tagged(text, "path")
}

// suggestions are the suggested answers of a question.
func suggestions(text string) (out []string) {
	raw := []byte(text)
	if esjson.TypeOf(raw) != esjson.TypeArray || !esjson.Valid(raw) {
		return tagged(text, "suggest")
	}
	for el := range esjson.Array(raw) {
		switch s, err := esjson.Unquote(el); {
		case err == nil:
			out = append(out, s)
		case esjson.TypeOf(el) == esjson.TypeObject:
			out = append(out, str(el, "text")+str(el, "answer"))
		}
	}
	return out
}

// tagged are the texts between all <tag> and </tag>.
func tagged(text, tag string) (out []string) {
	for {
		_, rest, ok := strings.Cut(text, "<"+tag+">")
		if !ok {
			return out
		}
		inner, after, ok := strings.Cut(rest, "</"+tag+">")
		if !ok {
			return out
		}
		out, text = append(out, strings.TrimSpace(inner)), after
	}
}
