package view

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// toolRows has a line for each name that Roo's rows have for tools. Tabs separate its parts: the name, a short name for
// people, and the tools that such a row may show; = marks a tool whose rows always have this name.
//
//go:embed tools.txt
var toolRows string

// verbs maps the names in rows to short names, rowTools maps tools to the names in their rows, and families maps each
// name to the tools that its rows may show.
var verbs, rowTools, families = func() (verbs, names map[string]string, shown map[string][]string) {
	verbs, names, shown = map[string]string{}, map[string]string{}, map[string][]string{}
	for line := range strings.Lines(toolRows) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		row := parts[0]
		if parts[1] != "" {
			verbs[row] = parts[1]
		}
		for tool := range strings.FieldsSeq(parts[2]) {
			tool, own := strings.CutPrefix(tool, "=")
			if own {
				names[tool] = row
			}
			shown[row] = append(shown[row], tool)
		}
	}
	return verbs, names, shown
}()

// tool reads the JSON text of a tool row.
func tool(it *Item, text string) {
	it.Class = Tool
	raw, ok := object(text)
	if !ok {
		it.Body = text
		return
	}
	name := str(raw, "tool")
	it.Title, it.Body = strings.TrimSpace(cmp.Or(verbs[name], name)+" "+target(raw)), ""
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
	if stats := inner(raw, "diffStats"); stats != nil {
		it.Title += fmt.Sprintf(" (+%d -%d)", esjson.IntOf(stats, "added"), esjson.IntOf(stats, "removed"))
	}
}

// Verb divides the title of a tool's row into the act ("search code", "$") and its object.
func Verb(title string) (verb, object string) {
	for _, v := range verbs {
		if strings.HasPrefix(title, v+" ") && len(v) > len(verb) {
			verb = v
		}
	}
	if verb == "" {
		verb, object, _ = strings.Cut(title, " ")
		return verb, object
	}
	return verb, title[len(verb)+1:]
}

// omitted are members of a row without information for a reader.
var omitted = set("id key batchFiles diffStats originalContent isOutsideWorkspace " +
	"isProtected operationIsLocatedInWorkspace startLineNumbers")

// targeted are the members that the title shows.
var targeted = set("tool path regex query mode command skill")

// also adds the members of a row that are not shown yet, one on each line.
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

// edited shows the change in a row, and returns the members that it shows. The content of Roo's rows is a diff; the
// content of Cline's rows is the blocks that the model wrote. For a new file, the content is the file; for several
// files, it is a list.
func edited(it *Item, name string, raw []byte) (shown []string) {
	if batch(it, objectsOf(raw, "batchDiffs")) {
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
				return []string{"content", "diff"} // the applied diff, and the one that the model wrote
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
func batch(it *Item, files iter.Seq[[]byte]) bool {
	var body strings.Builder
	for el := range files {
		texts := []string{str(el, "content"), str(el, "diff")}
		for d := range objectsOf(el, "diffs") {
			texts = append(texts, str(d, "content"))
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

// target returns the object of a tool row: a path, a pattern, a name.
func target(raw []byte) string {
	parts := actedOn(raw, "regex", "query", "path", "mode", "command", "skill")
	if reason := str(raw, "reason"); str(raw, "tool") == "readFile" && reason != "" {
		parts = append(parts, "("+strings.TrimSpace(reason)+")")
	}
	return strings.Join(parts, " ")
}

func todos(raw []byte) string {
	list, ok := esjson.Get(raw, "todos")
	if !ok {
		return ""
	}
	if s, err := esjson.Unquote(list); err == nil {
		return s // a list that is still streamed
	}
	var b strings.Builder
	for el := range objects(esjson.Array(list)) {
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

// param is one member of a tool call's input. With words, text is a string of the model; else it is JSON.
type param struct {
	name, text string
	words      bool
}

// params returns the members of an input; ok is false if the input is not an object.
func params(input []byte) (list []param, ok bool) {
	if !isObject(input) {
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

// bodies are the parameters that hold the content of a call. Their text is shown without a name.
var bodies = []string{"content", "result", "question", "message", "todos", "response", "text", "reason", "context"}

// call fills an item with a tool call: its object in the title, its change as a diff, and other members one on each
// line.
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

// replacing are the names of parameters that hold the old and the new text.
var replacing = [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"search", "replace"}}

// changeOf returns the change of a call as a diff, and its other members.
func changeOf(name string, list []param) (diff string, rest []param, ok bool) {
	if i := firstOf(list, []string{"diff", "patch", "input"}); i >= 0 {
		if diff, ok := change(list[i].text); ok {
			return diff, slices.Delete(list, i, i+1), true
		}
	}
	for _, pair := range replacing {
		from := slices.IndexFunc(list, func(p param) bool { return p.name == pair[0] && p.words })
		to := slices.IndexFunc(list, func(p param) bool { return p.name == pair[1] && p.words })
		if from >= 0 && to >= 0 {
			diff := replaced(list[from].text, list[to].text)
			first, second := min(from, to), max(from, to) // a broken call names them twice: the others are shown
			return diff, slices.Delete(slices.Delete(list, second, second+1), first, first+1), true
		}
	}
	if name == "write_to_file" || name == "insert_content" {
		if i := firstOf(list, []string{"content"}); i >= 0 {
			diff := added(list[i].text)
			rest := slices.Delete(list, i, i+1) // a broken call names content twice: the other is shown
			return diff, slices.DeleteFunc(rest, func(p param) bool { return p.name == "line_count" }), true
		}
	}
	return "", list, false
}

// members writes parameters one on each line; text of many lines follows below the parameter's name.
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

// indented formats JSON for people: short values on one line, else one member on each line.
func indented(raw []byte) string {
	var out bytes.Buffer
	if len(raw) < 80 || json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// pathsIn returns the paths of a call that reads several files: JSON, or the tags of older versions.
func pathsIn(text string) (out []string) {
	raw := []byte(text)
	if esjson.TypeOf(raw) == esjson.TypeArray && esjson.Valid(raw) {
		for el := range objects(esjson.Array(raw)) {
			if path := str(el, "path"); path != "" {
				out = append(out, path)
			}
		}
		return out
	}
	return tagged(text, "path")
}

// suggestions returns the suggested answers of a question.
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

// tagged returns the texts between all <tag> and </tag>.
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

// change returns the change that a call makes as a diff; false if text is no change. A unified diff and a patch stay unchanged,
// and SEARCH/REPLACE blocks become a diff.
func change(text string) (string, bool) {
	text = unixEnds(text)
	if strings.HasPrefix(text, "@@") || strings.Contains(text, "\n@@") || strings.HasPrefix(text, "*** Begin Patch") {
		return text, true
	}
	return searchReplace(text)
}

// added returns a new file as a diff.
func added(text string) string {
	if text = strings.TrimSuffix(unixEnds(text), "\n"); text == "" {
		return ""
	}
	return "+" + strings.ReplaceAll(text, "\n", "\n+")
}

// replaced returns a diff between two texts. Common lines at the beginning and the end are context.
func replaced(before, after string) string {
	a, b := splitLines(before), splitLines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	put := func(mark string, lines []string) {
		for _, l := range lines {
			out.WriteString(mark + l + "\n")
		}
	}
	put(" ", a[:head])
	put("-", a[head:len(a)-tail])
	put("+", b[head:len(b)-tail])
	put(" ", a[len(a)-tail:])
	return out.String()
}

func splitLines(text string) []string {
	if text = strings.TrimSuffix(unixEnds(text), "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// searchReplace makes a diff of SEARCH/REPLACE blocks in the form of Roo and Cline. For an incomplete block, it makes a diff
// of the part that exists.
func searchReplace(text string) (diff string, ok bool) {
	const (
		outside = iota
		inSearch
		inReplace
	)
	var out strings.Builder
	var before, after []string
	at, where := outside, ""
	flush := func() {
		if at != outside {
			out.WriteString(strings.TrimSpace("@@ "+where) + "\n" + replaced(strings.Join(before, "\n"), strings.Join(after, "\n")))
		}
		before, after, at, where = nil, nil, outside, ""
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(unixEnds(text), "\n"), "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case marker(mark, "<-", "SEARCH"):
			flush()
			at, ok = inSearch, true
		case at == inSearch && len(before) == 0 && strings.HasPrefix(mark, ":start_line:"):
			where = "line " + strings.TrimPrefix(mark, ":start_line:")
		case at == inSearch && len(before) == 0 && strings.HasPrefix(mark, ":end_line:"):
		case at == inSearch && len(before) == 0 && mark == "-------":
		case at == inSearch && len(mark) >= 5 && strings.Trim(mark, "=") == "":
			at = inReplace
		case at == inReplace && marker(mark, ">+", "REPLACE"):
			flush()
		case at == inSearch:
			before = append(before, line)
		case at == inReplace:
			after = append(after, line)
		case mark != "":
			out.WriteString(" " + line + "\n")
		}
	}
	flush()
	return strings.TrimSuffix(out.String(), "\n"), ok
}

// marker reports whether a line is five or more of one of the signs, followed by the word.
func marker(line, signs, word string) bool {
	for _, sign := range signs {
		rest := strings.TrimLeft(line, string(sign))
		if len(line)-len(rest) >= 5 && strings.HasPrefix(strings.TrimSpace(rest), word) {
			return true
		}
	}
	return false
}

// left are the members of an object that an item does not show yet. A reader takes the members that it shows in its
// own words; the others are shown below, so that a reader of the page misses nothing that a later version of a
// program adds or writes in another shape.
type left struct {
	raw  []byte
	list []param
}

func leftOf(raw []byte) *left {
	list, _ := params(raw)
	return &left{raw, list}
}

// words takes a text; "" when there is none.
func (l *left) words(name string) (text string) {
	l.list = slices.DeleteFunc(l.list, func(p param) bool {
		if p.name != name || !p.words {
			return false
		}
		text = p.text
		return true
	})
	return text
}

// count takes a whole number.
func (l *left) count(name string) (int64, bool) {
	n, ok := esjson.GetInt(l.raw, name)
	if ok {
		l.drop(name)
	}
	return n, ok
}

// drop takes members that are shown already, or mean nothing to a reader.
func (l *left) drop(names ...string) {
	l.list = slices.DeleteFunc(l.list, func(p param) bool { return slices.Contains(names, p.name) })
}

// onto adds the remaining members to an item, one a line.
func (l *left) onto(it *Item) {
	list := slices.DeleteFunc(l.list, func(p param) bool {
		return strings.TrimSpace(p.text) == "" || !p.words && (p.text == "[]" || p.text == "{}")
	})
	switch rest := members(list); {
	case len(list) == 0:
	case it.Diff || it.Body == "": // text behind a diff would look like a part of it
		it.Body = strings.TrimSuffix(rest+"\n"+it.Body, "\n")
	default:
		it.Body = strings.TrimRight(it.Body, "\n") + "\n" + rest
	}
}
