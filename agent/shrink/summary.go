package shrink

import (
	"encoding/json"
	"slices"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// SummaryRest is how many messages come before another summary is tried, after one that failed and where one more
// would only be convenient: each costs a request.
const SummaryRest = 20

// SummaryDue reports whether it is time for a summary: percent of the window is used, as the task's settings ask,
// or the next request exceeds what is allowed. percent 0 switches summaries off.
func SummaryDue(s *task.State, tokens, allowed int64, percent, window int) bool {
	due := tokens > allowed || tokens*100 >= int64(percent)*int64(window)
	return percent > 0 && due && (tokens > allowed || sinceSummary(s) >= SummaryRest)
}

// sinceSummary is how many messages came since our newest summary. Where little of the window is allowed, a
// summary and what stays may fill it, and without this each turn would make another one.
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

// SummaryNumber is the number of the next summary of a task, from 1.
func SummaryNumber(s *task.State) int {
	number := 1
	for _, c := range s.Covers {
		if c.Kind == api.ActionCondense {
			number++
		}
	}
	return number
}

// Keep is how many bytes of the newest messages a summary leaves as they are: about a tenth of the model's window,
// and a quarter of a history that is small for it. window is in tokens, 0 = not known.
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

// SummaryWords are the words that ask the model for a summary. wish is what the person wants the summary to keep or to leave out.
func SummaryWords(wish string) string {
	if wish == "" {
		return summaryWords
	}
	return summaryWords + "\n\nThe user asks for this in particular:\n" + wish
}

// TranscriptRequest asks for a summary of a history that is too long to be sent: it holds the history as a text,
// as much of it as fits. The caller adds the model.
func TranscriptRequest(messages [][]byte, words string, window int) llm.Request {
	text := "This is a conversation between a user and a software engineer who works with tools.\n\n<conversation>\n" +
		contextwindow.Transcript(contextwindow.Effective(messages), transcriptLimit(window)) + "\n</conversation>\n\n" + words
	return llm.Request{
		System:   "You write summaries of work in progress, for the one that continues it.",
		Messages: []llm.Message{{Role: "user", Content: rows.Join([]json.RawMessage{rows.Text(text)})}},
	}
}

// transcriptLimit bounds the bytes of a transcript: half of the window, at three bytes a token. A window that is
// not known counts as 100,000 tokens.
func transcriptLimit(window int) int {
	if window <= 0 {
		window = 100_000
	}
	return max(window*3/2, 8<<10)
}

// WithText is a user message with one more text at its end.
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
	m.Content = rows.Join(append(blocks, rows.Text(text)))
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
