package task_test

import (
	"fmt"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

// runHistory plays runs of a task as the agent would write them down, with kills,
// rewinds and other programs in between. It folds what it writes, as an owner does,
// and knows by itself what must have become of each call.
type runHistory struct {
	t     *rapid.T
	s     *task.State
	blobs blobMap
	log   []journal.Commit
	runs  int
	asked int
	want  map[*task.Call]task.Outcome // by the rules of this file, not by the fold
	bill  int64                       // what was spent, in micro-dollars
}

func play(t *rapid.T) *runHistory {
	p := &runHistory{t: t, blobs: blobMap{}, want: map[*task.Call]task.Outcome{}}
	p.s = task.New(p.blobs)
	p.open()
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		p.step()
	}
	return p
}

func (p *runHistory) one(label string, of ...string) string {
	return rapid.SampledFrom(of).Draw(p.t, label)
}
func (p *runHistory) chance(n int) bool { return rapid.IntRange(1, n).Draw(p.t, "chance") == 1 }

// write is one commit of an owner: it must fold.
func (p *runHistory) write(events ...task.Event) {
	c := encode(p.t, p.s.Seq+1, events...)
	p.log = append(p.log, c)
	if err := p.s.Apply(c); err != nil {
		p.t.Fatalf("the owner's own commit: %v", err)
	}
}

func (p *runHistory) blob(content string) string {
	name := fmt.Sprint("blob", len(p.blobs))
	p.blobs[name] = content
	return name
}

// body is content in the log or, as large content is, in a blob.
func (p *runHistory) body(raw string) task.Body {
	if p.chance(6) {
		return task.Body{Blob: p.blob(raw)}
	}
	return body(raw)
}

func (p *runHistory) open() {
	owner := task.EpochOpened{Owner: []byte(`{"pid":1}`)}
	if p.chance(3) {
		uiFile, uiSpans := list(say(1, "from Roo"), `{"ts":2,"type":"ask","ask":"resume_task"}`)
		apiFile, apiSpans := list(`{"role":"user","content":"from Roo"}`, assistant("r1"))
		p.write(owner, task.Adopted{Task: "t", Item: []byte(`{"number":2}`), Files: []task.Original{
			original(task.UI, p.blob(uiFile), uiSpans...), original(task.API, p.blob(apiFile), apiSpans...),
		}})
		p.start()
		for _, c := range p.s.OpenCalls() {
			p.want[c] = task.OutcomeUnknown
		}
		return
	}
	p.write(owner, task.Created{Task: "t", Number: 1, Title: "x"})
	p.start(ui(1, say(1, "do it")), task.MessageAdded{History: task.API, Message: 2, Body: p.body(`{"role":"user","content":[{"type":"text","text":"do it"}],"ts":2}`)})
}

func (p *runHistory) start(more ...task.Event) {
	p.runs++
	p.write(append([]task.Event{task.RunStarted{Run: fmt.Sprint("run", p.runs)}}, more...)...)
}

// step goes on as the history calls for, or lets something come in between.
func (p *runHistory) step() {
	switch rapid.IntRange(0, 11).Draw(p.t, "what happens") {
	case 0:
		p.kill()
	case 1:
		p.rewind()
	case 2:
		p.foreign()
	case 3:
		p.queue()
	case 4:
		p.write(task.SubtaskStarted{Child: fmt.Sprint("child", len(p.s.Children))})
		if p.chance(2) {
			p.write(task.SubtaskEnded{Child: p.s.Children[0].ID, Result: "done"})
		}
	default:
		if open := p.s.OpenCalls(); len(open) > 0 {
			p.calls(open)
			return
		}
		p.turn()
	}
}

func (p *runHistory) turn() {
	req, n := p.s.NextMessage(), p.s.Turns+1
	p.write(ui(req, fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{}"}`, req)), task.TurnStarted{Turn: n, Request: req})
	if p.chance(5) {
		p.write(task.TurnFailed{Turn: n, Kind: "overloaded"})
		return
	}
	end := p.stream("text")
	paid := fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"cost\":0.5}"}`, req)
	usage := task.UsageChanged{Turn: n, Request: req, Input: 10, Output: 2}
	if p.chance(2) {
		micros := int64(500_000)
		usage.CostMicros, p.bill = &micros, p.bill+micros
	}
	var ids []string
	for i := range rapid.IntRange(0, 3).Draw(p.t, "calls") {
		ids = append(ids, fmt.Sprintf("c%d.%d", p.s.Replies, i)) // played again after a rewind
	}
	reply := p.s.NextMessage()
	end = append(end, task.MessageChanged{Message: req, Body: body(paid)}, usage, task.TurnEnded{Turn: n},
		task.MessageAdded{History: task.API, Message: reply, Body: p.body(assistant(ids...))})
	p.write(end...)
	for _, c := range p.s.OpenCalls() {
		p.want[c] = task.OutcomeNotStarted
	}
	if len(ids) == 0 {
		p.write(task.MessageAdded{History: task.API, Message: p.s.NextMessage(), Body: p.body(`{"role":"user","content":[{"type":"text","text":"use a tool"}]}`)})
	}
}

// stream shows text that comes in pieces, some cut inside a character, and gives
// the events that end its row.
func (p *runHistory) stream(kind string) []task.Event {
	row := p.s.NextMessage()
	head := fmt.Sprintf(`{"ts":%d,"type":"say","say":%q,"text":`, row, kind)
	p.write(ui(row, head+`"","partial":true}`))
	for range rapid.IntRange(0, 3).Draw(p.t, "pieces") {
		p.write(task.MessageTextSaved{Message: row, Text: p.one("piece", "plain ", "\"quoted\"\n", "\u2028<&>", "\xed\xa0\xbd", "\xed\xb8\x80", "é")})
	}
	return []task.Event{
		task.MessageTextSaved{Message: row, Text: "."},
		task.MessageChanged{Message: row, Body: task.Body{Compose: []task.Piece{{Literal: head}, {TextOf: row}, {Literal: `,"partial":false}`}}}},
	}
}

// calls closes the open calls and sends their results; a kill may come anywhere.
func (p *runHistory) calls(open []*task.Call) {
	var ids []string
	for _, c := range open {
		ids = append(ids, c.ID)
		if c.Finished == nil {
			if p.chance(8) {
				p.kill()
				return
			}
			p.call(c)
		}
	}
	p.write(answers(p.s.NextMessage(), ids...))
}

func (p *runHistory) call(c *task.Call) {
	if c.Outcome() != task.OutcomeUnknown {
		if p.chance(3) {
			p.ask(c)
		}
		p.write(task.ToolStarted{Call: c.ID, Name: "n", Replay: "never"})
		p.want[c] = task.OutcomeUnknown
		if p.chance(2) {
			p.write(task.ToolProcess{Call: c.ID, PGID: 7, Mark: "m"})
		}
		if p.chance(8) {
			p.kill()
		}
	}
	var events []task.Event
	if p.chance(2) {
		events = p.stream("command_output")
	}
	done := task.ToolFinished{Call: c.ID, Name: "n", Outcome: "ok", Result: []byte(resultOf(c.ID, "r"))}
	if p.chance(4) {
		done.Blob, done.Result = p.blob(resultOf(c.ID, "large")), nil
	}
	p.write(append(events, done, task.FileChanged{Path: p.one("path", "a", "b"), Source: p.one("source", "read_tool", "roo_edited", "user_edited")})...)
	p.want[c] = task.OutcomeFinished
}

func (p *runHistory) ask(c *task.Call) {
	p.asked++
	q := fmt.Sprint("q", p.asked)
	p.write(api.QuestionOpened{Question: q, Kind: "approval", Call: c.ID, Text: "may I?"})
	if p.chance(3) {
		p.write(task.RunWaiting{Run: p.s.Run.ID, Question: q})
	}
	yes := true
	p.write(api.QuestionClosed{Question: q, Approve: &yes, By: "terminal"})
}

// kill ends a run in the middle. The next one notes it and starts.
func (p *runHistory) kill() {
	p.runs++
	p.write(task.EpochOpened{}, task.RunEnded{Run: p.s.Run.ID, Outcome: "interrupted"}, task.RunStarted{Run: fmt.Sprint("run", p.runs)})
}

func (p *runHistory) rewind() {
	if p.chance(2) {
		p.goBack()
		return
	}
	from := rapid.Uint64Range(3, max(3, p.s.NextMessage())).Draw(p.t, "rewind to")
	var gone []uint64
	for id := from; id < p.s.NextMessage(); id++ {
		gone = append(gone, id)
	}
	p.write(task.MessageHidden{Messages: gone, Reason: "rewind"})
}

// goBack takes both histories back, and sometimes forth again, or to a branch.
func (p *runHistory) goBack() {
	if n := len(p.s.Branches); n > 0 && p.chance(3) {
		was := maps.Clone(p.want)
		p.write(task.Rewound{Why: "branch", Branch: p.s.Branches[rapid.IntRange(0, n-1).Draw(p.t, "branch")].Seq})
		for c := range was { // what each branch knows of a call is for other tests to say
			p.want[c] = c.Outcome()
		}
		return
	}
	if len(p.s.UI()) < 2 {
		return
	}
	e, err := rewind.At(p.s, rapid.IntRange(1, len(p.s.UI())-1).Draw(p.t, "row"), p.chance(4))
	if err != nil {
		return
	}
	was := maps.Clone(p.want)
	p.write(e)
	for _, id := range e.Calls {
		if c := p.s.Call(id); c.Started || c.Foreign {
			p.want[c] = task.OutcomeUnknown
		} else {
			p.want[c] = task.OutcomeNotStarted
		}
	}
	if p.chance(2) {
		p.write(task.Undone{Undoes: p.s.Seq})
		p.want = was
	}
}

// foreign is another program that wrote one file: it keeps, changes, drops and adds.
func (p *runHistory) foreign() {
	h, ours := task.UI, p.s.UI()
	added := []string{say(90, "from outside")}
	if p.chance(2) {
		h, ours = task.API, p.s.API()
		added = []string{`{"role":"assistant","content":"from outside"}`, `{"role":"user","content":"and on"}`}
	}
	file := &jsonArray{}
	for i, m := range ours {
		switch {
		case i == len(ours)-1 && p.chance(4): // dropped
		case h == task.UI && p.chance(5):
			file.add(m.ID, say(91, "edited"))
		default:
			file.add(m.ID, "")
		}
	}
	for _, raw := range added {
		file.add(0, raw)
	}
	e := taken(h, "", file)
	e.Blob, e.First = p.blob(file.data), p.s.NextMessage()
	p.write(e)
}

func (p *runHistory) queue() {
	id := fmt.Sprint("in", p.s.Seq)
	p.write(task.InputQueued{Input: id, Text: "and also"})
	if p.chance(2) {
		m := p.s.NextMessage()
		p.write(task.InputTaken{Input: id}, ui(m, strings.Replace(say(int(m), "and also"), "text", "user_feedback", 1)))
	}
}
