package view

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// API reads one element of the history that the model sees. Its blocks are the parts of the item. A text with calls,
// results or additions of the program in tags gives a part for each.
func API(raw []byte, number int) Item {
	it := Item{Number: number, Class: Unknown}
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
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

// tags are why a message is not sent as it is stored.
func tags(raw []byte) string {
	var out []string
	if v, _ := esjson.GetBool(raw, "isSummary"); v {
		out = append(out, "summary")
	}
	if v, _ := esjson.GetBool(raw, "isTruncationMarker"); v {
		out = append(out, "truncation marker")
	}
	if str(raw, "condenseParent") != "" {
		out = append(out, "condensed away")
	}
	if str(raw, "truncationParent") != "" {
		out = append(out, "truncated away")
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
		if bad, _ := esjson.GetBool(block, "is_error"); bad {
			it.Class, it.Title = Failure, it.Title+" (error)"
		}
		it.Body, it.Images = ResultText(block)
		it.Body = untagged(it.Body)
		it.Pictures, it.Data = resultPictures(block)
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
	if esjson.TypeOf(block) != esjson.TypeObject {
		return Item{Kind: "tool_result", Class: Output}
	}
	it := Item{Kind: "tool_result", Class: Output}
	it.Body, it.Images = ResultText(block)
	it.Body = untagged(it.Body)
	it.Pictures, it.Data = resultPictures(block)
	return spelled(it)
}
