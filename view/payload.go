package view

import (
	"fmt"
	"math"
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
		it.Images, it.Pictures = 1, []string{picture(str(raw, "imageUri"))}
	},
	"browser_action": func(it *Item, raw []byte) {
		it.Title, it.Body = strings.TrimSpace("browser "+str(raw, "action")+" "+str(raw, "coordinate")), str(raw, "text")
	},
	"browser_action_result": func(it *Item, raw []byte) {
		it.Title, it.Body = strings.TrimSpace("browser "+str(raw, "currentUrl")), str(raw, "logs")
		if shot := str(raw, "screenshot"); shot != "" {
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
	if raw, ok := object(text); ok && payloads[kind] != nil {
		payloads[kind](it, raw)
	}
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

// input is a tool call's input as lines: a member each, text of many lines below
// its name. What is no object is shown as it is.
func input(raw []byte) string {
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		return string(raw)
	}
	var lines []string
	for key, val := range esjson.Members(raw) {
		text, err := esjson.Unquote(val)
		if err != nil {
			text = string(val)
		}
		if text = unixEnds(text); strings.Contains(text, "\n") {
			text = "\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
		}
		sep := ": "
		if text == "" || text[0] == '\n' {
			sep = ":"
		}
		lines = append(lines, key+sep+text)
	}
	return strings.Join(lines, "\n")
}
