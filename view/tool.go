package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// verbs are short names for Roo's tool rows.
var verbs = map[string]string{
	"editedExistingFile": "edit", "appliedDiff": "edit", "newFileCreated": "create", "fileDeleted": "delete",
	"readFile": "read", "readCommandOutput": "read output", "fetchInstructions": "instructions",
	"listFilesTopLevel": "list", "listFilesRecursive": "list all", "listFiles": "list", "listTasks": "list tasks",
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
	shown := []string{"content"}
	switch name {
	case "editedExistingFile", "appliedDiff", "newFileCreated", "insertContent", "searchAndReplace":
		shown = edited(it, name, raw)
	case "readFile", "fileDeleted": // their content is the path again, or what was deleted
	case "switchMode":
		it.Body, shown = str(raw, "reason"), []string{"reason"}
	case "updateTodoList":
		it.Body, shown = todos(raw), []string{"todos"}
	default:
		it.Body = str(raw, "content")
	}
	also(it, name, raw, shown)
	if added, removed, ok := diffStats(raw); ok {
		it.Title += fmt.Sprintf(" (+%d -%d)", added, removed)
	}
}

// omitted are members that add nothing for a reader of the row.
var omitted = set("id key batchFiles diffStats originalContent isOutsideWorkspace " +
	"isProtected operationIsLocatedInWorkspace startLineNumbers")

// targeted are the members that the title shows.
var targeted = set("tool path regex query mode command skill")

// also adds the members of a row that are not shown yet, one a line.
func also(it *Item, name string, raw []byte, shown []string) {
	l := leftOf(raw)
	l.list = slices.DeleteFunc(l.list, func(p param) bool {
		switch p.name {
		case "reason":
			if name == "readFile" {
				return p.words // the title shows it
			}
		case "todos":
			text := todos(raw)
			if name != "updateTodoList" && text != "" {
				it.Body = strings.TrimPrefix(it.Body+"\n"+text, "\n")
			}
			return text != ""
		case "imageData":
			it.Images, it.Pictures, it.Data = 1, []string{picture(p.text)}, whole([]string{p.text})
			return true
		}
		if slices.Contains(shown, p.name) || targeted[p.name] {
			return p.words || p.name == "batchDiffs" // another shape is not shown yet
		}
		return omitted[p.name]
	})
	l.onto(it)
}

// edited shows the change of a row, and returns the members that it shows. Roo's rows hold a diff as their content,
// Cline's the blocks that the model wrote; a new file is there whole; a change of several files is a list.
func edited(it *Item, name string, raw []byte) (shown []string) {
	if list, ok := esjson.Get(raw, "batchDiffs"); ok && batch(it, list) {
		return []string{"batchDiffs"}
	}
	for _, key := range []string{"content", "diff"} {
		text := str(raw, key)
		if text == "" {
			continue
		}
		var ok bool
		if it.Body, ok = change(text); ok {
			it.Diff = true
			if _, same := change(str(raw, "diff")); same || str(raw, "diff") == text {
				return []string{"content", "diff"} // as it was applied, and as the model wrote it
			}
			return []string{key}
		}
		if it.Body = text; name == "newFileCreated" {
			it.Body, it.Diff = added(text), true
		}
		return []string{key}
	}
	if from := str(raw, "search"); from != "" {
		it.Body, it.Diff = replaced(from, str(raw, "replace")), true
		return []string{"search", "replace"}
	}
	return nil
}

// batch shows the changes of several files; false when the list is empty.
func batch(it *Item, list []byte) bool {
	var body strings.Builder
	for el := range esjson.Array(list) {
		if esjson.TypeOf(el) != esjson.TypeObject {
			continue
		}
		texts := []string{str(el, "content"), str(el, "diff")}
		if diffs, ok := esjson.Get(el, "diffs"); ok {
			for d := range esjson.Array(diffs) {
				if esjson.TypeOf(d) == esjson.TypeObject {
					texts = append(texts, str(d, "content"))
				}
			}
		}
		fmt.Fprintln(&body, "@@ "+str(el, "path"))
		for _, text := range texts {
			if diff, ok := change(text); ok {
				text = diff
			}
			if text != "" {
				fmt.Fprintln(&body, strings.TrimRight(text, "\n"))
			}
		}
	}
	if body.Len() == 0 {
		return false
	}
	it.Body, it.Diff = body.String(), true
	return true
}

// target is the object of a tool row: a path, a pattern, a name.
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
