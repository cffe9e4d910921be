// Package shrink decides how a history is made to fit into a model's window: how large the next request is, when
// a summary is due, what a truncation hides, which block is too large to send.
//
// It reads the task's state and returns events or numbers; the agent asks the model, commits and sends. Nothing is
// removed from the journal: a truncation hides messages and a summary replaces them in requests, both as Roo does it.
//
// Sizes are what the provider counted for the newest request, and an estimate for what came since. A task whose
// requests were never counted goes out whole, and the provider judges.
package shrink

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/outline"
)

// ImageTokens is about the number of tokens that providers count for an image, and ImageBytes the text that counts as
// many. Neither depends on the bytes of the image.
const (
	ImageTokens = 1600
	ImageBytes  = ImageTokens * 7 / 2
)

// Tokens returns how many tokens the next request is expected to have: those of the newest request and its reply, or
// those that a truncation or summary left, and an estimate for the messages since. It is 0 when nothing was counted
// yet. counted reports that a provider counted them.
func Tokens(s *task.State) (tokens int64, counted bool) {
	api := s.API()
	for _, m := range slices.Backward(s.UI()) {
		switch {
		case m.Kind() == "say:sliding_window_truncation" || m.Kind() == "say:condense_context" && !m.Foreign:
			key := "contextTruncation"
			if m.Kind() == "say:condense_context" {
				key = "contextCondense"
			}
			left := esjson.IntOf(esjson.Member(m.Raw(), key), "newContextTokens")
			if left <= 0 {
				continue
			}
			for _, later := range api {
				if later.ID > m.ID {
					left += messageTokens(later)
				}
			}
			return left, false
		case m.Kind() == "say:api_req_started" || m.Kind() == "say:condense_context":
			var t usage.Tokens
			if spent, ok := m.Spent(); ok {
				spent.AddTo(&t)
			}
			if t.ContextTokens <= 0 {
				continue // the request got no reply
			}
			tokens := int64(t.ContextTokens)
			for k := len(api) - 1; k >= 0 && api[k].Kind() != "assistant"; k-- {
				tokens += messageTokens(api[k])
			}
			return tokens, m.Kind() == "say:api_req_started"
		}
	}
	return 0, false
}

// messageTokens estimates a message's tokens.
func messageTokens(m *task.Message) int64 {
	bytes, images := contextwindow.Weigh(m.Raw())
	return contextwindow.EstimateTokens(int64(bytes)) + int64(images)*ImageTokens
}

// Size returns the size of those messages that are sent, in bytes; an image counts by its tokens.
func Size(raws [][]byte) int64 {
	total := int64(0)
	for _, raw := range contextwindow.Effective(raws) {
		total += messageSize(raw)
	}
	return total
}

func messageSize(raw []byte) int64 {
	bytes, images := contextwindow.Weigh(raw)
	return int64(bytes) + int64(images)*ImageBytes
}

// Largest finds the largest call or result among the messages that are sent. messages are the visible messages as
// they are sent; size is the size of the block, total that of all messages. Messages that a summary replaces, or
// that a truncation hides, are not sent.
func Largest(s *task.State, messages [][]byte) (at contextwindow.Origin, size, total int) {
	sent := api.SetOf(s.Sent())
	for i, m := range s.API() {
		raw := messages[i]
		if !sent[m] || esjson.TextOf(raw, "truncationParent") != "" {
			continue
		}
		total += int(messageSize(raw))
		content, _ := esjson.Get(raw, "content")
		if len(content) <= size || m.Kind() == "" {
			continue
		}
		for block, b := range slices.Collect(esjson.Array(content)) {
			typ, _ := esjson.GetString(b, "type")
			if n, _ := contextwindow.Weigh(b); (typ == "tool_result" || typ == "tool_use") && n > size {
				at, size = contextwindow.Origin{Message: i, Block: block}, n
			}
		}
	}
	return at, size, total
}

// SummaryRest is how many messages must come before another summary is tried, after a failed one or when another one
// would only be convenient: each costs a request.
const SummaryRest = 20

// SummaryDue reports whether it is time for a summary: percent of the window is used, as the task's settings ask,
// or the next request exceeds what is allowed. percent 0 switches summaries off.
func SummaryDue(s *task.State, tokens, allowed int64, percent, window int) bool {
	due := tokens > allowed || tokens*100 >= int64(percent)*int64(window)
	return percent > 0 && due && (tokens > allowed || sinceSummary(s) >= SummaryRest)
}

// sinceSummary returns how many messages came since our newest summary. Where little of the window is allowed, a
// summary and what stays may fill it, and without this check each turn would make another summary.
func sinceSummary(s *task.State) int {
	last, n := uint64(0), 0
	for _, c := range s.Covers {
		if c.Kind == api.ActionCondense && !c.Off {
			last = c.Row
		}
	}
	for _, m := range s.API() {
		if m.ID > last {
			n++
		}
	}
	return n
}

// SummarySinceReply reports whether a summary was made since the last reply: another one right after it would
// not help.
func SummarySinceReply(s *task.State) bool {
	last := uint64(0)
	for _, m := range s.API() {
		if m.Kind() == "assistant" {
			last = m.ID
		}
	}
	return slices.ContainsFunc(s.Covers, func(c task.Cover) bool { return c.Kind == api.ActionCondense && !c.Off && c.Message > last })
}

// SummaryNumber returns the number of the next summary of a task, from 1.
func SummaryNumber(s *task.State) int {
	number := 1
	for _, c := range s.Covers {
		if c.Kind == api.ActionCondense {
			number++
		}
	}
	return number
}

// Keep returns how many bytes of the newest messages a summary leaves as they are: about a tenth of the model's
// window, and a quarter of a history that is small for it. window is in tokens, 0 = not known.
func Keep(raws [][]byte, window int) int {
	const least, most, unknown = 4 << 10, 120 << 10, 40 << 10
	keep := unknown
	if window > 0 {
		keep = min(max(window/10*7/2, least), most)
	}
	total := 0
	for _, raw := range contextwindow.Effective(raws) {
		bytes, _ := contextwindow.Weigh(raw)
		total += bytes
	}
	return min(keep, total/4)
}

// SummaryWords returns the words that ask the model for a summary. wish is what the person wants the summary to keep
// or to leave out.
func SummaryWords(wish string) string {
	if wish == "" {
		return summaryWords
	}
	return summaryWords + "\n\nThe user asks for this in particular:\n" + wish
}

// TranscriptRequest asks for a summary of a history that is too long to be sent: it holds the history as a text,
// as much of it as fits in half of the window, at three bytes a token. A window that is not known counts as 100,000
// tokens. The caller adds the model.
func TranscriptRequest(messages [][]byte, words string, window int) llm.Request {
	limit := max(cmp.Or(window, 100_000)*3/2, 8<<10)
	text := "This is a conversation between a user and a software engineer who works with tools.\n\n<conversation>\n" +
		contextwindow.Transcript(contextwindow.Effective(messages), limit) + "\n</conversation>\n\n" + words
	return llm.Request{
		System:   "You write summaries of work in progress, for the one that continues it.",
		Messages: []llm.Message{{Role: "user", Content: esjson.List([]json.RawMessage{rows.Text(text)})}},
	}
}

// WithText returns a user message with one more text at its end.
func WithText(m llm.Message, text string) llm.Message {
	var blocks []json.RawMessage
	if esjson.TypeOf(m.Content) == esjson.TypeString {
		words, _ := esjson.Unquote(m.Content)
		blocks = append(blocks, rows.Text(words))
	} else {
		for b := range esjson.Array(m.Content) {
			blocks = append(blocks, b)
		}
	}
	m.Content = esjson.List(append(blocks, rows.Text(text)))
	return m
}

const summaryWords = `The conversation above is about to be replaced by a summary that you write now. Whoever goes on has only your summary and the newest messages. Answer with the summary alone. Call no tool.

Write down, under these headings:
1. What the user wants: every request and every later change of mind, in the user's own words where they matter. Name what was asked for last.
2. What was decided, and why; what the user refused or does not want.
3. Files: each path that was read, made or changed and still matters, with what matters in it (names, signatures, short pieces of code that will be needed again).
4. What went wrong, how it was mended, and what was tried without success.
5. Where the work stands: what is done and was seen to work, what is begun, what is open.
6. The next step, exactly.

Be complete about facts and short about everything else. Do not invent anything.`

// Truncate hides the older half of what is sent, in Roo's manner: the messages get a tag, a marker takes their
// place, and the person gets a row. It returns the events and how many messages they hide, 0 when too few are left
// to hide. at is the time stamp of the marker and the row, next the number of the next message of the commit, and before
// the tokens of the next request without the truncation; 0 = not known.
func Truncate(s *task.State, run string, at int64, next uint64, before int64) (events []task.Event, hidden int) {
	api := s.API()
	raws := make([][]byte, len(api))
	for i, m := range api {
		raws[i] = m.Raw()
	}
	cut := contextwindow.CutOldest(raws, 0.5, uuid.NewString(), at)
	if len(cut.Hide) == 0 {
		return nil, 0
	}
	total := Size(raws)
	left := total
	var covered []*task.Message
	for _, i := range cut.Hide {
		left -= messageSize(raws[i])
		covered = append(covered, api[i])
	}
	if before <= 0 {
		before = contextwindow.EstimateTokens(total)
	}
	after := max(before*max(left, 0)/max(total, 1), 1)
	marker := task.MessageAdded{History: task.API, Message: next, Body: task.Body{Raw: cut.Marker}}
	if cut.At < len(api) {
		marker.Before = api[cut.At].ID
	}
	shown := esjson.ObjectOf("ts", at, "type", "say", "say", "sliding_window_truncation", // Roo's row; it has no text
		"contextTruncation", esjson.ObjectOf("truncationId", cut.ID, "messagesRemoved", int64(len(cut.Hide)),
			"prevContextTokens", before, "newContextTokens", after))
	row := task.MessageAdded{History: task.UI, Message: next + 1, Body: task.Body{Raw: shown}}
	return []task.Event{marker, row, task.HistoryTruncated{
		Run: run, Truncation: cut.ID, Marker: marker.Message, Row: row.Message,
		Covers: s.RunsOf(covered), Messages: len(cut.Hide), Before: before, After: after,
	}}, len(cut.Hide)
}

// A summary carries outlines of the files that the model has read: their content went with the messages that held it.
const (
	outlinesLimit = 50_000  // bytes of all outlines
	outlineFile   = 1 << 20 // bytes; a larger file gets no outline
	outlineFiles  = 200     // files that are tried
)

// Outlines returns the outlines of the files that the model knows, newest first, each as the text of a reminder in
// Roo's form. A missing, too large or unreadable file has none: the summary has to suffice.
func Outlines(ctx context.Context, w *workspace.Workspace, files []task.FileRecord) []string {
	if w == nil {
		return nil
	}
	var out []string
	seen, room, tried := map[string]bool{}, outlinesLimit, 0
	for _, f := range slices.Backward(files) {
		known := f.Source == "read_tool" || f.Source == "file_mentioned" || f.Source == "roo_edited"
		if !known || seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		if tried++; tried > outlineFiles || ctx.Err() != nil {
			break
		}
		p, err := w.Resolve(f.Path)
		if err != nil || p.Outside || p.Ignored {
			continue
		}
		data, _, err := w.Read(ctx, p, outlineFile)
		if err != nil {
			continue
		}
		folded := outline.Of(f.Path, string(data))
		if folded == "" || len(folded) > room {
			continue
		}
		room -= len(folded)
		out = append(out, "## File Context: "+f.Path+"\n"+folded)
	}
	return out
}
