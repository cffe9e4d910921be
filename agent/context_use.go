package agent

import (
	"strings"

	"github.com/roost-dev/roost/agent/shrink"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
)

// ContextUse breaks down the next request, in tokens. The parts add up to Used. Where the provider counted the request
// before, its count is shared out by size; otherwise everything is estimated.
type ContextUse struct {
	Model    string
	Window   int64 // 0 = not known
	Reply    int64 // of the window, kept free for the reply
	Used     int64
	Free     int64 // 0 when the window is not known
	Counted  bool  // by the provider
	Messages int   // how many messages would be sent
	Parts    []ContextPart
}

// ContextPart is one part of a request.
type ContextPart struct {
	Name   string // system, tools, summary, history, results, files, images
	Tokens int64
}

// fileReaders are the tools whose results are files.
var fileReaders = map[string]bool{"read_file": true}

// Context breaks down the next request.
func (a *Agent) Context() (ContextUse, error) {
	a.setUp()
	raws, err := a.state().RawAPI()
	if err != nil {
		return ContextUse{}, err
	}
	size := map[string]int64{"system": int64(len(a.systemPrompt()))}
	for _, t := range a.toolSpecs() {
		size["tools"] += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	sent := contextwindow.Effective(raws)
	for _, raw := range sent {
		a.addSizes(raw, size)
	}
	u := ContextUse{Model: a.Task.Settings.Model, Window: int64(a.Model.Entry.Context), Messages: len(sent)}
	total := int64(0)
	for _, n := range size {
		total += n
	}
	u.Used, u.Counted = shrink.Tokens(a.state())
	if u.Used == 0 {
		u.Used = contextwindow.EstimateTokens(total, contextwindow.Calibration{})
	}
	left := u.Used
	names := []string{"system", "tools", "summary", "history", "results", "files", "images"}
	for i, name := range names {
		n := u.Used * size[name] / max(total, 1)
		if i == len(names)-1 || n > left {
			n = left
		}
		left -= n
		u.Parts = append(u.Parts, ContextPart{Name: name, Tokens: n})
	}
	// The rest from rounding goes to the history, unless there are images.
	if last := &u.Parts[len(u.Parts)-1]; size["images"] == 0 && last.Tokens > 0 {
		u.Parts[3].Tokens, last.Tokens = u.Parts[3].Tokens+last.Tokens, 0
	}
	if u.Window > 0 {
		u.Reply = int64(a.replyRoom())
		u.Free = max(u.Window-u.Reply-u.Used, 0)
	}
	return u, nil
}

// addSizes adds the parts of a message to the sizes.
func (a *Agent) addSizes(raw []byte, size map[string]int64) {
	name := "history"
	if is, _ := esjson.Get(raw, "isSummary"); string(is) == "true" {
		name = "summary"
	}
	content, _ := esjson.Get(raw, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		size[name] += int64(len(content))
		return
	}
	for b := range esjson.Array(content) {
		bytes, images := contextwindow.Weigh(b)
		size["images"] += int64(images) * shrink.ImageTokens * 7 / 2
		typ, _ := esjson.GetString(b, "type")
		text, _ := esjson.GetString(b, "text")
		part := name
		switch {
		case typ == "image":
			continue
		case typ == "tool_result":
			part = "results"
			id, _ := esjson.GetString(b, "tool_use_id")
			if c := a.state().Call(id); c != nil && fileReaders[c.Name] {
				part = "files"
			}
		case strings.HasPrefix(text, "[read_file for "):
			part = "files"
		}
		size[part] += int64(bytes)
	}
}
