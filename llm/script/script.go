// Package script is a model that plays its replies from a file. It is for trying
// Roost without a key, for tests and for benchmarks, and goes through the same
// loop as every provider.
//
// A script is a YAML list of turns:
//
//	[
//	  {text: "I will look.", reasoning: "First the list.",
//	   tools: [{name: list_files, input: {path: .}}],
//	   usage: {input: 100, output: 20, cache_read: 0, cache_write: 0},
//	   delay: 20ms,                      # before each chunk; a word is a chunk
//	   expect: ["the user's words"]},    # what the request must contain
//	  {error: {status: 529, message: busy, times: 2}},
//	]
//
// usually written in YAML's block style, one "- " a turn.
//
// A Script keeps no state: a Request holds the number of replies in its history and
// of failed attempts since, and these decide the turn. So a script continues after a
// restart and plays again after a rewind. An error entry makes that many attempts fail
// before the reply that follows it. After its last turn a script completes the task.
//
// An entry {summary: "what happened"}, anywhere in the list, is no turn. The first one
// is played for the first summary of a condensed history, the next for the second, and
// the last for all that follow; without one, the script sends a line of its own.
//
// An entry {task: TEXT} is no turn. The turns after it, up to the next such entry, belong
// to the task whose first message contains the text, so that subtasks have turns of their
// own; the first entry that fits counts. The turns before the first such entry belong to
// all other tasks.
//
// A number with an exponent needs a point before it (1.0e3): the YAML reader takes
// 1e3 for a string.
//
// A script never retries: the caller sees each failing attempt.
package script

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "script"

// Script is a parsed script. It implements llm.Provider and is safe for
// concurrent use.
type Script struct {
	groups    []group
	tasks     []*taskPart
	summaries []*turn
}

// taskPart holds the turns of the task whose first message contains the text.
type taskPart struct {
	text   string
	groups []group
}

// group is one reply with the failures that come before it. The last group has no
// turn of its own: it completes the task.
type group struct {
	failures []*turn
	reply    *turn
}

// turn is an entry of the file: a turn, unless it has a Task or a Summary. A nil pointer means that the member is absent.
type turn struct {
	Summary   string     `yaml:"summary"`
	Text      string     `yaml:"text"`
	Reasoning string     `yaml:"reasoning"`
	Tools     []call     `yaml:"tools"`
	Usage     *llm.Usage `yaml:"usage"`
	Delay     string     `yaml:"delay"`
	Error     *failure   `yaml:"error"`
	Expect    []string   `yaml:"expect"`
	Task      *string    `yaml:"task"`

	line  int
	delay time.Duration
}

type call struct {
	Name  string `yaml:"name"`
	Input any    `yaml:"input"`

	json json.RawMessage // of Input
}

type failure struct {
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
	Times   *int   `yaml:"times"`
}

var _ llm.Provider = (*Script)(nil)

//go:embed demo.yaml
var demo []byte

// Default returns a small script that works in any folder: it writes a file, reads it back, runs a command and
// completes.
func Default() *Script {
	s, err := Parse(demo)
	if err != nil {
		panic("script: the embedded demo is broken: " + err.Error())
	}
	return s
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	b, err := inputfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	s, err := Parse(b)
	return s, api.Failed(err, "read script %s", path)
}

// Name returns "script".
func (s *Script) Name() string { return Name }

// groupsFor returns the turns for a request's task.
func (s *Script) groupsFor(req llm.Request) []group {
	first := llm.Request{Messages: req.Messages[:min(len(req.Messages), 1)]}
	for _, t := range s.tasks {
		if contains(first, t.text) {
			return t.groups
		}
	}
	return s.groups
}

// ending is the turn after the last one of the script.
var ending = turn{Tools: []call{{Name: "attempt_completion", json: json.RawMessage(`{"result":"The script has ended."}`)}}}

// at returns the turn for a request.
func (s *Script) at(req llm.Request) *turn {
	if n := min(req.Summary, len(s.summaries)); n > 0 {
		return s.summaries[n-1]
	} else if req.Summary > 0 {
		return &turn{Text: fmt.Sprintf("This is the scripted summary %d, of %d messages.", req.Summary, len(req.Messages))}
	}
	replies, failures := req.Replies, req.Failures
	g, groups := group{}, s.groupsFor(req)
	if replies < len(groups) {
		g = groups[max(replies, 0)]
	}
	if failures = max(failures, 0); failures < len(g.failures) {
		return g.failures[failures]
	}
	return cmp.Or(g.reply, &ending)
}

// Stream plays the turn of the request. Errors are *llm.Error: those of the script, or Kind Script when the request
// lacks text that the turn expects.
func (s *Script) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		t := s.at(req)
		for _, want := range t.Expect {
			if !contains(req, want) {
				yield(nil, &llm.Error{Provider: Name, Kind: llm.Script,
					Message: fmt.Sprintf("turn at line %d expects %q, and the request does not contain it", t.line, want)})
				return
			}
		}
		wait := func() bool {
			if t.delay > 0 {
				_ = wire.Backoff{}.Wait(ctx, t.delay)
			}
			if ctx.Err() != nil { // without any delay, too
				yield(nil, context.Cause(ctx))
			}
			return ctx.Err() == nil
		}
		if t.Error != nil {
			if wait() {
				yield(nil, t.failure())
			}
			return
		}
		for _, c := range t.chunks(req.Replies) {
			if !wait() || !yield(c, nil) {
				return
			}
		}
		if u := t.used(); u != (llm.Usage{}) && !yield(llm.UsageReport{Usage: u}, nil) {
			return
		}
		yield(t.done(req), nil)
	}
}

func (t *turn) failure() *llm.Error {
	message := cmp.Or(t.Error.Message, "the script plays an error")
	e := &llm.Error{Provider: Name, Kind: llm.Network, Status: t.Error.Status, Message: message}
	if e.Status != 0 {
		e.Kind = wire.KindOfStatus(e.Status, message)
	}
	return e
}

func (t *turn) used() llm.Usage { return *cmp.Or(t.Usage, new(llm.Usage)) }

func (t *turn) chunks(replies int) []llm.Chunk {
	out := api.Each(words(t.Reasoning), func(w string) llm.Chunk { return llm.ReasoningDelta{Text: w} })
	out = append(out, api.Each(words(t.Text), func(w string) llm.Chunk { return llm.TextDelta{Text: w} })...)
	for i, c := range t.Tools {
		out = append(out, llm.ToolDelta{Index: i, ID: id(replies, i), Name: c.Name, Input: string(c.json)})
	}
	return out
}

func (t *turn) done(req llm.Request) llm.Done {
	d := llm.Done{ID: fmt.Sprintf("script_%d", req.Replies+1), Model: req.Model, StopReason: "end_turn", Usage: t.used()}
	if t.Reasoning != "" {
		d.Blocks = append(d.Blocks, wire.ReasoningBlock(t.Reasoning))
	}
	if t.Text != "" {
		d.Blocks = append(d.Blocks, wire.TextBlock(t.Text))
	}
	for i, c := range t.Tools {
		d.StopReason = "tool_use"
		d.Blocks = append(d.Blocks, wire.CallBlock(id(req.Replies, i), c.Name, c.json))
	}
	return d
}

// id returns the id of a call, which is the same whenever the same turn is played: a replay after a crash finds its
// own records.
func id(replies, i int) string { return fmt.Sprintf("call_%d_%d", replies+1, i+1) }

// word matches a word with the blanks around it: blanks after it are part of it, blanks at the start of a text are
// part of its first word, and a text of blanks is one word.
var word = lazyregexp.New(`^[\t-\r\x{85}\pZ]+$|[\t-\r\x{85}\pZ]*[^\t-\r\x{85}\pZ]+[\t-\r\x{85}\pZ]*`)

// words splits a text into words. Joined, they are the text again.
func words(s string) []string { return word().FindAllString(s, -1) }

// contains reports whether a request contains a string. It searches the JSON that is sent, and every decoded text in
// it.
func contains(req llm.Request, want string) bool {
	return strings.Contains(req.System, want) || slices.ContainsFunc(req.Messages, func(m llm.Message) bool {
		return strings.Contains(string(m.Content), want) || inStrings(m.Content, want)
	}) || slices.ContainsFunc(req.Tools, func(s llm.ToolSpec) bool {
		return strings.Contains(s.Name, want) ||
			strings.Contains(s.Description, want) ||
			strings.Contains(string(s.Schema), want)
	})
}

// inStrings reports whether a string in a JSON value, at any depth, contains a text.
func inStrings(raw []byte, want string) bool {
	switch esjson.TypeOf(raw) {
	case esjson.TypeString:
		s, err := esjson.Unquote(raw)
		return err == nil && strings.Contains(s, want)
	case esjson.TypeArray:
		for v := range esjson.Array(raw) {
			if inStrings(v, want) {
				return true
			}
		}
	case esjson.TypeObject:
		for _, v := range esjson.Members(raw) {
			if inStrings(v, want) {
				return true
			}
		}
	}
	return false
}
