package view

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
)

// API reads one element of the history that the model sees. Its blocks become the parts of the item. In a text with tags,
// each call, result and addition of the program becomes a part.
func API(raw []byte, number int) Item {
	it := Item{Number: number, Class: Unknown}
	if !isObject(raw) {
		it.Kind, it.Title, it.Body = "invalid", "not a message", string(raw)
		return it
	}
	it.TS, _ = esjson.GetInt(raw, "ts")
	it.Kind = str(raw, "role")
	text := Model
	switch it.Kind {
	case "user":
		it.Class, text = User, User
	case "assistant":
		it.Class = Model
	case "":
		it.Kind = str(raw, "type") // reasoning without a message
		it.Title = it.Kind
	default:
		it.Title = it.Kind
	}
	it.Title = strings.TrimSpace(it.Title + tags(raw))
	content, _ := esjson.Get(raw, "content")
	if s, err := esjson.Unquote(content); err == nil {
		it.Parts = words(s, text)
	}
	for block := range esjson.Array(content) {
		if esjson.TypeOf(block) == esjson.TypeObject && str(block, "type") == "text" {
			it.Parts = append(it.Parts, words(str(block, "text"), text)...)
			continue
		}
		it.Parts = append(it.Parts, part(block, text))
	}
	it.Parts = joined(it.Parts)
	if it.Kind == "user" && len(it.Parts) > 0 && !slices.ContainsFunc(it.Parts, func(p Item) bool { return p.Class == User }) {
		it.Class = Output // only results of tools
	}
	return it
}

// tags returns why a message is not sent in its stored form.
func tags(raw []byte) string {
	var out []string
	for _, tag := range []struct {
		is   bool
		name string
	}{
		{esjson.IsTrue(raw, "isSummary"), "summary"}, {esjson.IsTrue(raw, "isTruncationMarker"), "truncation marker"},
		{str(raw, "condenseParent") != "", "condensed away"}, {str(raw, "truncationParent") != "", "truncated away"},
	} {
		if tag.is {
			out = append(out, tag.name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " [" + strings.Join(out, ", ") + "]"
}

// part reads one content block.
func part(block []byte, text Class) Item {
	it := Item{Class: Unknown}
	if esjson.TypeOf(block) != esjson.TypeObject {
		it.Kind, it.Body = "invalid", string(block)
		return it
	}
	it.Kind = str(block, "type")
	switch it.Kind {
	case "text":
		it.Class, it.Body = text, str(block, "text")
	case "thinking":
		it.Class, it.Body = Reasoning, str(block, "thinking")
	case "reasoning":
		it.Class, it.Body = Reasoning, str(block, "text")
		if it.Body == "" && str(block, "encrypted_content") != "" {
			it.Title = "(encrypted)"
		}
	case "redacted_thinking":
		it.Class, it.Title = Reasoning, "(encrypted)"
	case "tool_use":
		it.Class, it.Call, it.Title = Tool, str(block, "id"), str(block, "name")
		in, _ := esjson.Get(block, "input")
		if list, ok := params(in); ok {
			call(&it, it.Title, list)
		} else {
			it.Body = string(in)
		}
	case "tool_result":
		it.Class, it.Call = Output, str(block, "tool_use_id")
		it.Title = "result"
		if name := str(block, "name"); name != "" {
			it.Title += " of " + name // Cline records it
		}
		if esjson.IsTrue(block, "is_error") {
			it.Class, it.Title = Failure, it.Title+" (error)"
		}
		it.result(block)
	case "image", "document", "media":
		it.Class, it.Images, it.Title, it.Pictures = text, 1, it.Kind, []string{blockPicture(block)}
		it.Data = whole([]string{dataURL(block)})
	case "file":
		it.Class, it.Title, it.Body = text, "file "+str(block, "path"), str(block, "content")
	case "thoughtSignature":
		it.Class, it.Title = Note, "thought signature"
	default:
		it.Title, it.Body = it.Kind, indented(block)
	}
	return it
}

// ToolResult reads a tool_result block for display below its call.
func ToolResult(block []byte) Item {
	it := Item{Kind: "tool_result", Class: Output}
	it.result(block)
	return spelled(it)
}

// result fills an item with the text of a tool_result block, and with descriptions and data of the block's images.
func (it *Item) result(block []byte) {
	text, images := ResultText(block)
	it.Body, it.Images = untagged(text), images
	for _, b := range contextwindow.ResultParts(esjson.Member(block, "content")) {
		if str(b, "type") == "image" {
			it.Pictures, it.Data = append(it.Pictures, blockPicture(b)), append(it.Data, dataURL(b))
		}
	}
	it.Data = whole(it.Data)
}

// spelled turns a result that is an object with the outcome of the call into plain text.
func spelled(it Item) Item {
	raw, ok := object(it.Body)
	if !ok {
		return it
	}
	switch status := str(raw, "status"); status {
	case "denied", "error":
		it.Class, it.Title = Failure, status
		fallthrough
	case "approved", "success":
		list, _ := params(raw)
		list = slices.DeleteFunc(list, func(p param) bool { return p.name == "status" })
		it.Body = members(list)
		if len(list) == 1 && list[0].words {
			it.Body = list[0].text
		}
	}
	return it
}

// Until 2026 models called tools by tags in their text, and results were text, too. Such texts also contain additions of the
// program. words splits such a text, so that a reader does not see the tags.

// xmlTools are the tools that were called by tags.
var xmlTools = set("read_file write_to_file replace_in_file apply_diff insert_content search_and_replace search_files list_files " +
	"list_code_definition_names execute_command browser_action use_mcp_tool access_mcp_resource ask_followup_question attempt_completion " +
	"switch_mode new_task fetch_instructions update_todo_list codebase_search plan_mode_respond load_mcp_documentation web_fetch " +
	"run_slash_command generate_image new_rule condense report_bug use_skill edit_file")

// words splits the text of a block. class is the class of its speaker.
func words(text string, class Class) []Item {
	if class == Model {
		return modelWords(text)
	}
	return userWords(text)
}

// piece is a part of a text: what a tag at the beginning of a line encloses, or text between such tags ("").
type piece struct {
	tag   string
	title string // of an attachment
	text  string // between the tags
	whole bool   // the closing tag exists
}

// split splits a text, in order. open returns the tag at the beginning of a text, its title and its length; "" = there
// is none. A tag without a closing tag extends to the end of the text.
func split(text string, open func(string) (tag, title string, size int)) (out []piece) {
	from := 0 // of the text that no piece holds yet
	for at := 0; at < len(text); {
		if tag, title, size := open(text[at:]); tag != "" {
			inner, after, whole := strings.Cut(text[at+size:], "</"+tag+">")
			out = append(out, piece{text: text[from:at], whole: true}, piece{tag, title, inner, whole})
			at = len(text) - len(after)
			from = at
			continue
		}
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return append(out, piece{text: text[from:], whole: true})
}

// pieces splits the text of a model: into reasoning, calls in tags, and text.
func pieces(text string) []piece {
	said := func(text string) (tag, title string, size int) {
		name := opening(text)
		if name != "thinking" && !xmlTools[name] {
			return "", "", 0
		}
		return name, "", len(name) + 2
	}
	return api.Some(split(text, said), func(p piece) (piece, bool) {
		if p.tag == "" {
			p.text = strings.TrimSpace(p.text)
		}
		return p, p.tag != "" || p.text != ""
	})
}

func modelWords(text string) (out []Item) {
	for _, p := range pieces(text) {
		it := Item{Kind: "text", Class: Model, Body: p.text, Partial: !p.whole}
		switch p.tag {
		case "":
		case "thinking":
			it.Kind, it.Class, it.Body = p.tag, Reasoning, strings.TrimSpace(p.text)
		default:
			it.Kind, it.Class = "tool_use", Tool
			call(&it, p.tag, tagParams(p.text))
		}
		out = append(out, it)
	}
	if len(out) == 0 {
		return []Item{{Kind: "text", Class: Model}}
	}
	return out
}

// opening returns the name of the tag at the beginning of a text; "" = there is none.
func opening(text string) string {
	if !strings.HasPrefix(text, "<") {
		return ""
	}
	n := 1
	for n < len(text) && (text[n] >= 'a' && text[n] <= 'z' || text[n] == '_') {
		n++
	}
	if n == 1 || n == len(text) || text[n] != '>' {
		return ""
	}
	return text[1:n]
}

// tagParams returns the parameters of a call in tags. A parameter that may itself hold tags extends to its last
// closing tag, as Roo and Cline parse it. Text between parameters has no name.
func tagParams(text string) (list []param) {
	unnamed := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, param{"", s, true})
		}
	}
	from := 0 // of the text without a name
	for at := 0; at < len(text); {
		next := strings.IndexByte(text[at:], '<')
		if next < 0 {
			break
		}
		at += next
		name := opening(text[at:])
		if name == "" {
			at++
			continue
		}
		unnamed(text[from:at])
		at += len(name) + 2
		end := strings.Index(text[at:], "</"+name+">")
		switch name {
		case "content", "diff", "args", "result", "arguments":
			end = strings.LastIndex(text[at:], "</"+name+">")
		}
		val := text[at:]
		if end >= 0 {
			val = text[at : at+end]
			at += len(name) + 3
		}
		at += len(val)
		from = at
		list = append(list, param{name, strings.Trim(val, "\n"), true})
	}
	unnamed(text[from:])
	return list
}

// additions are texts that the program adds to the user's messages: the beginning of each, and its title.
var additions = []struct{ start, title string }{
	{"<system-reminder>", "a reminder for the model"},
	{"[ERROR]", "a note to the model"},
	{"[TASK RESUMPTION]", "a note to the model"},
	{"# task_progress", "a reminder for the model"},
}

// attached are the tags around contents that the user's text mentions, and their titles.
var attached = map[string]string{
	"environment_details": "environment details", "file_content": "file", "folder_content": "folder", "url_content": "page",
	"workspace_diagnostics": "diagnostics", "git_working_state": "git status", "git_commit": "git commit", "terminal_output": "terminal",
}

// userWords splits a text into the user's own text, results of tools, and additions of the program.
func userWords(text string) (out []Item) {
	var words strings.Builder
	var rest []Item
	for i, p := range split(text, attachment) {
		switch {
		case p.tag != "":
			rest = append(rest, Item{Kind: "text", Class: Appended, Title: p.title, Body: strings.Trim(p.text, "\n")})
		case i == 0:
			words.WriteString(p.text)
		default: // behind an attachment
			words.WriteString(strings.TrimLeft(p.text, "\n"))
		}
	}
	if s := strings.TrimSpace(words.String()); s != "" || len(rest) == 0 {
		out = append(out, userPart(s, words.String()))
	}
	return append(out, rest...)
}

// attachment returns the tag of an attachment at the beginning of a text, its title, and the length of the tag.
func attachment(text string) (tag, title string, size int) {
	if !strings.HasPrefix(text, "<") {
		return "", "", 0
	}
	line, _, _ := strings.Cut(text[1:min(len(text), 4096)], "\n")
	head, _, ok := strings.Cut(line, ">")
	name, attributes, _ := strings.Cut(head, " ")
	title, known := attached[name]
	if !ok || !known {
		return "", "", 0
	}
	if _, what, ok := strings.Cut(attributes, `="`); ok {
		title += " " + strings.TrimSuffix(what, `"`)
	}
	return name, title, len("<>") + len(head)
}

func userPart(s, whole string) Item {
	it := Item{Kind: "text", Class: User, Body: whole}
	if xmlResult(s) {
		head, body, _ := strings.Cut(s, "\n")
		head = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(head), "["), "] Result:")
		it.Class, it.Title, it.Body = Output, head, body
		return it
	}
	for _, a := range additions {
		if strings.HasPrefix(s, a.start) {
			it.Class, it.Title = Appended, a.title
			it.Body = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(s, "</system-reminder>"), "<system-reminder>"))
			return it
		}
	}
	for _, tag := range ownTags {
		if inner, ok := strings.CutPrefix(s, "<"+tag+">"); ok {
			if inner, ok = strings.CutSuffix(inner, "</"+tag+">"); ok {
				it.Kind, it.Body = "words", strings.TrimSpace(inner)
				return it
			}
		}
	}
	if lines := strings.Split(whole, "\n"); strings.Contains(whole, "<") { // the tags are inside
		kept := slices.DeleteFunc(lines, func(l string) bool {
			name := opening(strings.Replace(strings.TrimSpace(l), "</", "<", 1))
			return slices.Contains(ownTags, name) && len(strings.TrimSpace(l)) <= len(name)+3
		})
		it.Body = strings.Join(kept, "\n")
	}
	return it
}

// ownTags enclose the user's own text.
var ownTags = []string{"user_message", "task", "feedback", "answer"}

// joined merges the blocks of one call's result, which are its head and its text, into one part without the tags
// around it.
func joined(parts []Item) []Item {
	out := parts[:0:0]
	open := -1                   // the result that continues
	bodies := map[int][]string{} // of results with several texts
	for _, p := range parts {
		switch {
		case p.Kind == "text" && p.Class == Output:
			open = len(out)
			bodies[open] = []string{p.Body}
		case p.Kind == "text" && p.Class == User && open >= 0:
			bodies[open] = append(bodies[open], p.Body)
			continue
		case p.Images == 0:
			open = -1
		}
		out = append(out, p)
	}
	for i := range out {
		if out[i].Kind == "text" && out[i].Class == Output {
			out[i].Body = strings.TrimPrefix(strings.Join(bodies[i], "\n"), "\n")
			if strings.Contains(out[i].Body, "<error>") || strings.HasPrefix(out[i].Body, "The tool execution failed") {
				out[i].Class = Failure
			}
			out[i].Body = untagged(out[i].Body)
		}
	}
	return out
}

// wrappers are the tags around the parts of a result.
var wrappers = set("files file content file_write_result path operation notice problems user_edits final_file_content feedback error " +
	"answer i user_message file_content result")

// aroundWords are the wrappers inside other results.
var aroundWords = set("feedback user_message error final_file_content")

// untagged removes the tags around the parts of a result. It changes only lines that consist of such tags and their
// values. Most tags are removed only from a result that begins with one, because the content of a file may look like
// them.
func untagged(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	text = unixEnds(text)
	names := wrappers
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if _, ok := unwrappedLine(strings.TrimSpace(first), wrappers); !ok {
		names = aroundWords
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if shown, ok := unwrappedLine(strings.TrimSpace(line), names); ok {
			out = append(out, shown...)
		} else {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// unwrappedLine removes the wrappers from a line that consists of wrappers and their values; ok is false for other
// lines.
func unwrappedLine(s string, names map[string]bool) (shown []string, ok bool) {
	const most = 4 << 10 // each tag costs a search for its closing tag
	if len(s) > most {
		return nil, false
	}
	for s != "" {
		if !strings.HasPrefix(s, "<") {
			return nil, false
		}
		if close, rest, found := strings.Cut(s, ">"); found && strings.HasPrefix(close, "</") && names[close[2:]] {
			s, ok = rest, true
			continue
		}
		tag, rest, found := strings.Cut(s[1:], ">")
		name, attributes, more := strings.Cut(tag, " ")
		if !found || !names[name] || more && !strings.HasPrefix(attributes, "lines=") && !strings.HasPrefix(attributes, "path=") {
			return nil, false
		}
		if what, val, _ := strings.Cut(attributes, "="); what == "lines" {
			shown = append(shown, "lines "+strings.Trim(val, `"`))
		} else if more {
			shown = append(shown, strings.Trim(val, `"`)+":")
		}
		val, after, whole := strings.Cut(rest, "</"+name+">")
		if whole && !strings.HasPrefix(val, "<") {
			switch name {
			case "file", "content", "i", "error", "notice", "answer", "feedback", "user_message":
				shown = append(shown, val)
			case "path":
				shown = append(shown, val+":")
			default:
				shown = append(shown, name+": "+val)
			}
			rest = after
		}
		s, ok = rest, true
	}
	return shown, ok
}

// xmlResult reports whether a text block begins the result of a tool in the form before results had blocks:
// "[read_file for 'a'] Result:".
func xmlResult(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.HasPrefix(first, "[") && strings.HasSuffix(strings.TrimSpace(first), "] Result:")
}
