package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// payloads reads the JSON that some rows carry as their text. A row whose text is
// none is shown as it is.
var payloads = map[string]func(it *Item, raw []byte){
	"api_req_deleted": sums, "deleted_api_reqs": sums, "subagent_usage": sums,
	"api_req_rate_limit_wait": func(it *Item, raw []byte) {
		seconds, _ := esjson.GetInt(raw, "seconds")
		it.Title, it.Body = fmt.Sprintf("waiting %d s for the rate limit", seconds), ""
	},
	"auto_approval_max_req_reached": func(it *Item, raw []byte) {
		count := str(raw, "count")
		if n, ok := esjson.GetInt(raw, "count"); ok {
			count = fmt.Sprint(n)
		}
		it.Title, it.Body = "the limit for automatic approvals is reached: "+count+" "+str(raw, "type"), ""
	},
	"too_many_tools_warning": func(it *Item, raw []byte) {
		tools, _ := esjson.GetInt(raw, "toolCount")
		servers, _ := esjson.GetInt(raw, "serverCount")
		it.Title, it.Body = fmt.Sprintf("many tools are switched on: %d of %d servers", tools, servers), ""
	},
	"image": func(it *Item, raw []byte) {
		it.Title, it.Body = strings.TrimSpace("an image "+str(raw, "imagePath")), ""
		it.Images, it.Pictures, it.Data = 1, []string{picture(str(raw, "imageUri"))}, whole([]string{str(raw, "imageUri")})
	},
	"browser_action": func(it *Item, raw []byte) {
		it.Title, it.Body = strings.TrimSpace("browser "+str(raw, "action")+" "+str(raw, "coordinate")), str(raw, "text")
	},
	"browser_action_result": func(it *Item, raw []byte) {
		it.Title, it.Body = strings.TrimSpace("browser "+str(raw, "currentUrl")), str(raw, "logs")
		if shot := str(raw, "screenshot"); shot != "" {
			data := append(make([]string, 0, it.Images+1), it.Data...)
			it.Data = whole(append(data[:len(it.Data)], append(make([]string, it.Images-len(it.Data)), shot)...))
			it.Images, it.Pictures = it.Images+1, append(it.Pictures, picture(shot))
		}
	},
	"codebase_search_result": func(it *Item, raw []byte) {
		content, ok := esjson.Get(raw, "content")
		if !ok || esjson.TypeOf(content) != esjson.TypeObject {
			return
		}
		it.Title = "found for " + str(content, "query")
		results, _ := esjson.Get(content, "results")
		var lines []string
		for el := range esjson.Array(results) {
			if esjson.TypeOf(el) == esjson.TypeObject {
				from, _ := esjson.GetInt(el, "startLine")
				to, _ := esjson.GetInt(el, "endLine")
				lines = append(lines, fmt.Sprintf("%s:%d-%d", str(el, "filePath"), from, to))
			}
		}
		it.Body = strings.Join(lines, "\n")
	},
}

// payload lets a kind's reader replace what was made of the bare text.
func payload(it *Item, kind, text string) {
	raw, ok := object(text)
	switch {
	case !ok:
	case payloads[kind] != nil:
		payloads[kind](it, raw)
	case it.Body == text && it.Class != User && it.Class != Model && it.Class != Result:
		it.Body = fields(raw)
	}
}

// plainly is an error that some programs write as an object.
func plainly(text string) string {
	if raw, ok := object(text); ok {
		return fields(raw)
	}
	return text
}

// fields tells an object that no reader knows: its message, and what else it says,
// a member a line.
func fields(raw []byte) string {
	list, ok := params(raw)
	if !ok {
		return string(raw)
	}
	var lead string
	if i := firstOf(list, []string{"message", "error"}); i >= 0 && list[i].words {
		lead = list[i].text
		list = slices.Delete(list, i, i+1)
	}
	return strings.Trim(lead+"\n"+members(list), "\n")
}

// sums is what requests that are no longer shown had cost.
func sums(it *Item, raw []byte) {
	in, _ := esjson.GetInt(raw, "tokensIn")
	out, _ := esjson.GetInt(raw, "tokensOut")
	it.Body = fmt.Sprintf("%s tokens in, %s out", Count(in), Count(out))
	for _, key := range []string{"cost", "totalCost"} {
		if cost, ok := esjson.GetFloat(raw, key); ok && !math.IsInf(cost, 0) && !math.IsNaN(cost) {
			it.Body += fmt.Sprintf(", $%.4f", cost)
			break
		}
	}
}

// codes are errors that Roo writes as a word.
var codes = map[string]string{
	"MODEL_NO_TOOLS_USED":         "the model called no tool",
	"MODEL_NO_ASSISTANT_MESSAGES": "the model's reply was empty",
}

// untimed takes the countdown out of a waiting row: the row is old by now.
func untimed(text string) string {
	before, rest, ok := strings.Cut(text, "<retry_timer>")
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, "</retry_timer>")
	return strings.TrimRight(before, "\n") + after
}
