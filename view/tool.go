package view

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// verbs say in a word what Roo's tool rows mean.
var verbs = map[string]string{
	"editedExistingFile": "edit", "appliedDiff": "edit", "newFileCreated": "create", "fileDeleted": "delete",
	"readFile": "read", "readCommandOutput": "read output", "fetchInstructions": "instructions",
	"listFilesTopLevel": "list", "listFilesRecursive": "list all", "listFiles": "list",
	"listCodeDefinitionNames": "definitions", "searchFiles": "search", "codebaseSearch": "search code",
	"switchMode": "switch mode", "newTask": "new task", "finishTask": "finish task",
	"generateImage": "image", "imageGenerated": "image", "runSlashCommand": "run", "updateTodoList": "todo list",
	"skill": "skill", "useSkill": "skill", "insertContent": "insert", "searchAndReplace": "replace",
	"webFetch": "fetch", "webSearch": "search the web", "summarizeTask": "summarise",
}

// tool reads the JSON text of a tool row.
func tool(it *Item, text string) {
	it.Class = Tool
	raw, ok := object(text)
	if !ok {
		it.Body = text
		return
	}
	name := str(raw, "tool")
	verb, known := verbs[name]
	if !known {
		verb = name
	}
	it.Title, it.Body = strings.TrimSpace(verb+" "+target(raw)), ""
	switch name {
	case "editedExistingFile", "appliedDiff", "newFileCreated", "insertContent", "searchAndReplace":
		edited(it, name, raw)
	case "listFilesTopLevel", "listFilesRecursive", "listFiles", "searchFiles", "listCodeDefinitionNames", "newTask":
		it.Body = str(raw, "content")
	case "switchMode":
		it.Body = str(raw, "reason")
	case "updateTodoList":
		it.Body = todos(raw)
	}
	if added, removed, ok := diffStats(raw); ok {
		it.Title += fmt.Sprintf(" (+%d -%d)", added, removed)
	}
}

// edited shows what a row changes. Roo's rows hold a diff as their content, Cline's
// the blocks that the model wrote; a new file is there as it is.
func edited(it *Item, name string, raw []byte) {
	for _, key := range []string{"content", "diff"} {
		text := str(raw, key)
		if text == "" {
			continue
		}
		var ok bool
		if it.Body, ok = change(text); ok {
			it.Diff = true
			return
		}
		if it.Body = text; name == "newFileCreated" {
			it.Body, it.Diff = added(text), true
		}
		return
	}
}

// target is what a tool row is about: a path, a pattern, a name.
func target(raw []byte) string {
	var parts []string
	for _, key := range []string{"regex", "query", "path", "mode", "command", "skill"} {
		if s := str(raw, key); s != "" {
			parts = append(parts, s)
		}
	}
	if list, ok := esjson.Get(raw, "batchFiles"); ok {
		for f := range esjson.Array(list) {
			if esjson.TypeOf(f) == esjson.TypeObject {
				parts = append(parts, str(f, "path"))
			}
		}
	}
	if reason := str(raw, "reason"); str(raw, "tool") == "readFile" && reason != "" {
		parts = append(parts, "("+strings.TrimSpace(reason)+")")
	}
	return strings.Join(parts, " ")
}

func diffStats(raw []byte) (added, removed int64, ok bool) {
	stats, ok := esjson.Get(raw, "diffStats")
	if !ok || esjson.TypeOf(stats) != esjson.TypeObject {
		return 0, 0, false
	}
	added, _ = esjson.GetInt(stats, "added")
	removed, _ = esjson.GetInt(stats, "removed")
	return added, removed, true
}

func todos(raw []byte) string {
	list, ok := esjson.Get(raw, "todos")
	if !ok {
		return ""
	}
	if s, err := esjson.Unquote(list); err == nil {
		return s // while it is streamed
	}
	var b strings.Builder
	for el := range esjson.Array(list) {
		if esjson.TypeOf(el) != esjson.TypeObject {
			continue
		}
		mark := "[ ] "
		switch str(el, "status") {
		case "completed":
			mark = "[x] "
		case "in_progress":
			mark = "[-] "
		}
		b.WriteString(mark + str(el, "content") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
