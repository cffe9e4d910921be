package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// payloads reads the JSON that some rows have as their text; members that a reader leaves are shown below as JSON. A row
// whose text is not JSON is shown as it is.
var payloads = map[string]func(it *Item, l *left){
	"api_req_deleted": sums, "deleted_api_reqs": sums, "subagent_usage": sums,
	"api_req_rate_limit_wait": func(it *Item, l *left) {
		if seconds, ok := l.count("seconds"); ok {
			it.Title = fmt.Sprintf("waiting %d s for the rate limit", seconds)
		}
	},
	"auto_approval_max_req_reached": func(it *Item, l *left) {
		count := l.words("count")
		if n, ok := l.count("count"); ok {
			count = fmt.Sprint(n)
		}
		if what := joinWords(count, l.words("type")); what != "" {
			it.Title += ": " + what
		}
	},
	"too_many_tools_warning": func(it *Item, l *left) {
		l.drop("threshold")
		tools, ok := l.count("toolCount")
		servers, of := l.count("serverCount")
		if ok {
			it.Title += fmt.Sprintf(": %d", tools)
		}
		if of {
			it.Title += fmt.Sprintf(" of %d servers", servers)
		}
	},
	"image": func(it *Item, l *left) {
		it.Title = joinWords(it.Title, l.words("imagePath"))
		if uri := l.words("imageUri"); uri != "" {
			it.Images, it.Pictures, it.Data = 1, []string{picture(uri)}, whole([]string{uri})
		}
	},
	"browser_action": func(it *Item, l *left) {
		it.Title = joinWords(joinWords(it.Title, l.words("action")), l.words("coordinate"))
		it.Body = l.words("text")
	},
	"browser_action_result": func(it *Item, l *left) {
		l.drop("currentMousePosition")
		it.Title, it.Body = joinWords(it.Title, l.words("currentUrl")), l.words("logs")
		if shot := l.words("screenshot"); shot != "" {
			data := append(make([]string, 0, it.Images+1), it.Data...)
			it.Data = whole(append(data[:len(it.Data)], append(make([]string, it.Images-len(it.Data)), shot)...))
			it.Images, it.Pictures = it.Images+1, append(it.Pictures, picture(shot))
		}
	},
	"codebase_search_result": func(it *Item, l *left) {
		l.drop("tool")
		it.Body = ""
		content, ok := esjson.Get(l.raw, "content")
		if !ok || esjson.TypeOf(content) != esjson.TypeObject {
			return
		}
		l.drop("content")
		found := leftOf(content)
		it.Title = joinWords("found for", found.words("query"))
		results, _ := esjson.Get(content, "results")
		var lines []string
		for el := range esjson.Array(results) {
			if esjson.TypeOf(el) == esjson.TypeObject {
				from, _ := esjson.GetInt(el, "startLine")
				to, _ := esjson.GetInt(el, "endLine")
				lines = append(lines, fmt.Sprintf("%s:%d-%d", str(el, "filePath"), from, to))
			}
		}
		if it.Body = strings.Join(lines, "\n"); it.Body != "" {
			found.drop("results")
		}
		found.onto(it)
	},
}

// payload lets the reader of a kind replace the item that the bare text gave.
func payload(it *Item, kind, text string) {
	raw, ok := object(text)
	switch {
	case !ok:
	case payloads[kind] != nil:
		if it.Body == text {
			it.Body = ""
		}
		l := leftOf(raw)
		payloads[kind](it, l)
		l.onto(it)
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

// fields shows an object that no reader knows: its message and its other members, one a line.
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

// sums shows the cost of requests that are no longer shown, if known.
func sums(it *Item, l *left) {
	l.drop("cacheReads", "cacheWrites") // parts of the input tokens
	var facts []string
	if in, ok := l.count("tokensIn"); ok {
		facts = append(facts, Count(in)+" tokens in")
	}
	if out, ok := l.count("tokensOut"); ok {
		facts = append(facts, Count(out)+" out")
	}
	for _, key := range []string{"cost", "totalCost"} {
		if cost, ok := esjson.GetFloat(l.raw, key); ok && !math.IsInf(cost, 0) && !math.IsNaN(cost) {
			l.drop(key)
			facts = append(facts, fmt.Sprintf("$%.4f", cost))
			break
		}
	}
	it.Body = strings.Join(facts, ", ")
}

// codes are errors that Roo writes as a word.
var codes = map[string]string{
	"MODEL_NO_TOOLS_USED":         "the model called no tool",
	"MODEL_NO_ASSISTANT_MESSAGES": "the model's reply was empty",
}

// untimed removes the countdown from a waiting row: it is over by now.
func untimed(text string) string {
	before, rest, ok := strings.Cut(text, "<retry_timer>")
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, "</retry_timer>")
	return strings.TrimRight(before, "\n") + after
}
