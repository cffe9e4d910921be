package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// Model plays a job. Its zero value but for Job is ready; it is safe for several
// goroutines.
type Model struct {
	Job Job
	// Asked is called with each request that is about to be answered. nil is fine.
	Asked func(llmtest.Request)
	// Given is called with each fault that is about to be given. nil is fine.
	Given func(Fault)

	mu      sync.Mutex
	sent    map[string]sent // the newest request of each plan
	faults  map[place]int
	counts  map[Fault]int
	refused int // requests that were too long

	summaries int
	deepest   map[string]int
	offered   map[string]bool
	problems  []string
}

// Answer is for llmtest.Server.Answer.
func (m *Model) Answer(r llmtest.Request) llmtest.Reply {
	if m.Asked != nil {
		m.Asked(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults == nil {
		m.faults, m.counts, m.deepest, m.offered = map[place]int{}, map[Fault]int{}, map[string]int{}, map[string]bool{}
		m.sent = map[string]sent{}
	}
	for _, name := range r.Offered() {
		m.offered[name] = true
	}
	if m.Job.Window > 0 && len(r.Body) > m.Job.Window {
		m.refused++
		return llmtest.Fail(400, tooLong(r.Path))
	}
	history := r.History()
	if reply, ok := m.summary(history); ok {
		return reply
	}
	at, err := m.next(history)
	if err != nil {
		m.problem("request %d: %v", r.Number, err)
		return llmtest.Fail(500, err.Error())
	}
	m.deepest[at.plan] = max(m.deepest[at.plan], at.step+1)
	if was := m.sent[at.plan]; was.shortened == m.refused+m.summaries && !goesOn(was.history, history) {
		m.problem("request %d, for %s: it does not begin with the request before it:\n%+v\n%+v", r.Number, at, was.history, history)
	}
	m.sent[at.plan] = sent{history, m.refused + m.summaries}
	reply, err := m.reply(at, history)
	if err != nil {
		m.problem("request %d: %v", r.Number, err)
		return llmtest.Fail(500, err.Error())
	}
	return reply
}

// sent is a request, and how often a history had been made shorter until then.
type sent struct {
	history   []llmtest.Turn
	shortened int
}

// goesOn reports whether a conversation begins with another one, so that a provider's cache holds it. The last turn
// of the other one may have got more words.
func goesOn(was, now []llmtest.Turn) bool {
	if len(now) < len(was) {
		return false
	}
	for i, t := range was {
		next := now[i]
		if i == len(was)-1 && strings.HasPrefix(next.Text, t.Text) {
			next.Text = t.Text
		}
		if !reflect.DeepEqual(t, next) {
			return false
		}
	}
	return true
}

// next is the place of the reply that a history calls for.
func (m *Model) next(history []llmtest.Turn) (place, error) {
	for i, t := range slices.Backward(history) {
		if at, ok := lastPlace(t.Text, goOn); ok && !t.Model {
			return at, nil // a summary of ours stands for all before
		}
		if !t.Model || len(t.Calls) == 0 {
			continue
		}
		at, ok := placeOf(t.Calls[0].ID)
		if !ok || at.step >= len(m.Job.Plans[at.plan]) {
			return at, fmt.Errorf("a reply with the call %s is none of ours", t.Calls[0].ID)
		}
		results := map[string]string{}
		for _, back := range history[i+1:] {
			for id, text := range back.Results {
				results[id] = text
			}
		}
		return m.after(at, results), nil
	}
	if len(history) > 0 {
		if name := first.FindStringSubmatch(history[0].Text); name != nil && m.Job.Plans[name[1]] != nil {
			return place{plan: name[1]}, nil
		}
	}
	return place{}, fmt.Errorf("the first words name no plan: %.200v", history)
}

// after judges what the calls of a place gave. A step is done, or it has to be looked
// at and mended.
func (m *Model) after(at place, results map[string]string) place {
	step := m.Job.Plans[at.plan][at.step]
	unknown := false
	for i, c := range step.calls(at.try) {
		id := at.id(i)
		text, ok := results[id]
		switch {
		case !ok:
			m.problem("%s: call %s has no result", at, id)
		case isUnknown(text):
			unknown = true
			if len(step.Mend) == 0 && !isStopped(text) {
				m.problem("%s: %s, which was to be decided by looking, is unknown: %s", at, c.Tool, text)
			}
		case at.try > 0 && len(step.Mend) == 0:
			// What was made already cannot be made again; the workspace will show it.
		case isDone(text), at.try%2 == 1:
		case !strings.Contains(text, c.Want):
			m.problem("%s: %s gave %.1000q, without %q", at, c.Tool, text, c.Want)
		}
	}
	switch {
	case at.try%2 == 1, unknown:
		return place{at.plan, at.step, at.try + 1}
	case at.step+1 == len(m.Job.Plans[at.plan]):
		m.problem("%s: the task goes on after its last step", at)
		return at
	}
	return place{at.plan, at.step + 1, 0}
}

// goOn is how a summary ends, and here how each reply names its place, so that a tale
// of the conversation holds it too.
var (
	goOn = regexp.MustCompile(`Go on with \[([a-z]+-\d+-\d+)\]`)
	here = regexp.MustCompile(`\[([a-z]+-\d+-\d+)\]`)
)

// lastPlace is the newest place that a text names.
func lastPlace(text string, name *regexp.Regexp) (place, bool) {
	found := name.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return place{}, false
	}
	return placeOf(found[len(found)-1][1] + "-1")
}

// summary is what is answered when older history is to be summarised: where we are.
func (m *Model) summary(history []llmtest.Turn) (llmtest.Reply, bool) {
	if len(history) == 0 {
		return llmtest.Reply{}, false
	}
	told := history[len(history)-1].Text
	if !strings.Contains(told, "Answer with the summary alone") {
		return llmtest.Reply{}, false
	}
	m.summaries++
	at, err := m.next(history)
	if err != nil { // the conversation is told in one text
		last, ok := lastPlace(told, here)
		if !ok {
			m.problem("a summary is wanted of what names no place: %.300q", told)
		}
		at = place{last.plan, last.step + 1, 0}
		if i := strings.LastIndex(told, "["+last.name()+"]"); i >= 0 && (last.try%2 == 1 || isUnknown(told[i:])) {
			at = place{last.plan, last.step, last.try + 1}
		}
	}
	reply := llmtest.Text(fmt.Sprintf("Much was done. Go on with [%s].", at.name()))
	reply.Input, reply.Output = 1000, 100
	return reply, true
}

// isUnknown, isStopped and isDone read the words that Roost has for a call that a kill
// or a stop cut.
func isUnknown(result string) bool {
	return strings.Contains(result, "was killed while this tool ran") && !isDone(result) || isStopped(result)
}

func isStopped(result string) bool {
	return strings.Contains(result, "cancelled this tool while it ran")
}

func isDone(result string) bool { return strings.Contains(result, "; it was not made again") }

var artifact = regexp.MustCompile(`cmd-\d+\.txt`)

// reply is the reply at a place, or the fault that is due there.
func (m *Model) reply(at place, history []llmtest.Turn) (llmtest.Reply, error) {
	step := m.Job.Plans[at.plan][at.step]
	var reply llmtest.Reply
	if step.Think != "" && at.try == 0 {
		reply = reply.AndThinking(step.Think, "signed-"+at.id(0))
	}
	text := step.Text
	if at.try > 0 {
		text = map[bool]string{true: "That was cut short: I look what came of it.", false: "Now I make sure of it."}[at.try%2 == 1]
	}
	reply = reply.AndText(cmp.Or(text, fmt.Sprintf("This is step %d.", at.step+1)) + " [" + at.name() + "]")
	kept := "" // their numbers are times, of one length
	for _, t := range history {
		for _, text := range t.Results {
			kept = max(kept, slices.Max(append(artifact.FindAllString(text, -1), "")))
		}
	}
	for i, c := range step.calls(at.try) {
		input, err := c.input(at.id(i), kept)
		if err != nil {
			return reply, err
		}
		reply = reply.AndCall(at.id(i), c.Tool, input)
	}
	reply.Pause = step.Pause
	reply.Input, reply.Output = 1000, 100
	if n := m.faults[at]; at.try == 0 && n < len(step.Faults) {
		m.faults[at]++
		m.counts[step.Faults[n]]++
		if m.Given != nil {
			m.Given(step.Faults[n])
		}
		return step.Faults[n].of(reply), nil
	}
	return reply, nil
}

// of is a reply as the fault leaves it.
func (f Fault) of(r llmtest.Reply) llmtest.Reply {
	switch f {
	case RateLimited:
		return llmtest.Fail(429, "Too many requests: slow down.").After("retry-after", "0.2")
	case Quota:
		return llmtest.Fail(429, "The quota of this hour is used up.").After("retry-after", "600")
	case Overloaded:
		return llmtest.Fail(529, "Overloaded").After("retry-after", "0.1")
	case Cut:
		return r.CutEvent(6).Broken()
	case Silent:
		return r.CutEvent(6)
	case Broken:
		return r.ErrorEvent(6, "api_error", "Internal server error")
	}
	return llmtest.Fail(500, "no such fault: "+string(f))
}

// tooLong is a provider's answer to a request that is longer than its window.
func tooLong(path string) string {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return "prompt is too long: 210000 tokens > 200000 maximum"
	case strings.HasSuffix(path, "/responses"):
		return "Your input exceeds the context window of this model. Please adjust your input and try again."
	case strings.HasSuffix(path, "/completions"):
		return "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages."
	}
	return "The input token count (1060000) exceeds the maximum number of tokens allowed (1048576)."
}

func (m *Model) problem(format string, args ...any) {
	if len(m.problems) < 20 {
		m.problems = append(m.problems, fmt.Sprintf(format, args...))
	}
}

// Problems are what was wrong in the requests, or missing.
func (m *Model) Problems() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.problems)
}

// Progress is how many steps of all plans were reached, and how many there are.
func (m *Model) Progress() (reached, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.deepest {
		reached += n
	}
	for _, steps := range m.Job.Plans {
		all += len(steps)
	}
	return reached, all
}

// Met returns how often each fault was given, and how many requests were too long and how many asked for a summary.
func (m *Model) Met() (faults map[Fault]int, tooLong, summaries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	faults = map[Fault]int{}
	for f, n := range m.counts {
		faults[f] = n
	}
	return faults, m.refused, m.summaries
}

// Unused are the tools that requests offered and that the job never calls.
func (m *Model) Unused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := map[string]bool{}
	for _, steps := range m.Job.Plans {
		for _, s := range steps {
			for _, c := range s.Calls {
				used[c.Tool] = true
			}
		}
	}
	var out []string
	for name := range m.offered {
		if !used[name] && !strings.HasPrefix(name, "mcp--") { // those are the server's, and two of them will do
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// String names a job by its size.
func (j Job) String() string {
	n := 0
	for _, steps := range j.Plans {
		n += len(steps)
	}
	data, err := json.Marshal(j.Plans)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d steps in %d plans, %d bytes", n, len(j.Plans), len(data))
}
