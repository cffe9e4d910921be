package contextwindow_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// told is a message as the reference holds it.
type messageText struct {
	id     uint64
	raw    string // without tags
	tag    string // the truncation that hid it
	cond   string // the summary that stands for it
	marker string // the truncation that it is the mark of, or the summary that it is
	own    bool
}

// head is both histories, by the reference.
type head struct{ ui, api []messageText }

func (h head) copied() head { return head{slices.Clone(h.ui), slices.Clone(h.api)} }

// shown is what a list must say: a tag counts while its marker is there.
func shown(list []messageText) []string {
	alive := map[string]bool{}
	for _, m := range list {
		alive[m.marker] = true
	}
	out := []string{}
	for _, m := range list {
		raw := m.raw
		if m.tag != "" && alive[m.tag] {
			raw = string(esjson.Set([]byte(raw), "truncationParent", esjson.Quote(nil, m.tag)))
		}
		if m.cond != "" && alive[m.cond] {
			raw = string(esjson.Set([]byte(raw), "condenseParent", esjson.Quote(nil, m.cond)))
		}
		out = append(out, raw)
	}
	return out
}

// moved is a move of the head that can be taken back: all that was before and after.
type moved struct {
	seq           uint64
	before, after head
	was, is       string // fingerprints
}

// world drives a task through its events and a reference beside it.
type world struct {
	*rapid.T
	s     *task.State
	log   []journal.Commit
	blobs blobs
	head  head
	done  []moved
	again []moved
	ts    int64
	turns int
	money int64
}

type blobs map[string]string

func (b blobs) Range(name string, off, n int64) ([]byte, error) {
	data, ok := b[name]
	if !ok {
		return nil, errors.New("no such blob")
	}
	if n < 0 {
		n = int64(len(data)) - off
	}
	return []byte(data[off : off+n]), nil
}

func (w *world) n(label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(w.T, label)
}

// commit is one commit of the owner.
func (w *world) commit(events ...task.Event) {
	c := journal.Commit{Seq: w.s.Seq + 1, Epoch: 1, At: int64(w.s.Seq + 1)}
	for _, e := range events {
		raw, err := task.Encode(e)
		if err != nil {
			w.Fatal(err)
		}
		c.Events = append(c.Events, raw)
	}
	w.log = append(w.log, c)
	if err := w.s.Apply(c); err != nil {
		w.Fatal(err)
	}
}

// went is a commit that goes on: nothing before it can be taken back.
func (w *world) went(events ...task.Event) {
	w.commit(events...)
	w.done, w.again = nil, nil
}

// stamp is a clock that stands still, goes back, or is not there.
func (w *world) stamp() string {
	switch w.n("clock", 0, 5) {
	case 0:
		return ""
	case 1:
		w.ts -= 7
	case 2:
	default:
		w.ts += 3
	}
	return fmt.Sprintf(`"ts":%d,`, w.ts)
}

func (w *world) row(kind, text string) (task.Event, messageText) {
	typ, name, _ := strings.Cut(kind, ":")
	m := messageText{own: true, raw: fmt.Sprintf(`{%s"type":%q,%q:%q,"text":%s}`, w.stamp(), typ, typ, name, esjson.Quote(nil, text))}
	return w.adds(task.UI, &m), m
}

func (w *world) turn(role, content string) (task.Event, messageText) {
	m := messageText{own: true, raw: fmt.Sprintf(`{%s"role":%q,"content":%s}`, w.stamp(), role, content)}
	return w.adds(task.API, &m), m
}

// next numbers the messages of one commit.
func (w *world) adds(h task.History, m *messageText) task.Event {
	m.id = w.s.NextMessage()
	return task.MessageAdded{History: h, Message: m.id, Body: task.Body{Raw: json.RawMessage(m.raw)}}
}

func text(s string) string { return `[{"type":"text","text":` + string(esjson.Quote(nil, s)) + `}]` }

func (w *world) say(words string) {
	kind := "say:user_feedback"
	if len(w.head.ui) == 0 {
		kind = "say:text"
	}
	row, r := w.row(kind, words)
	w.went(row)
	turn, m := w.turn("user", text(words))
	w.went(turn)
	w.head.ui, w.head.api = append(w.head.ui, r), append(w.head.api, m)
}

func (w *world) reply() {
	if n := len(w.head.api); n == 0 || !strings.Contains(w.head.api[n-1].raw, `"role":"user"`) {
		w.say("and then?")
	}
	w.turns++
	row, r := w.row("say:api_req_started", "{}")
	w.went(row, task.TurnStarted{Turn: w.turns, Request: r.id})
	words, t := w.row("say:text", fmt.Sprint("reply ", w.turns))
	w.went(words)
	var uses []string
	for i := range w.n("calls", 0, 2) {
		uses = append(uses, fmt.Sprintf(`{"type":"tool_use","id":"c%d_%d","name":"n","input":{}}`, w.turns, i))
	}
	content := `[` + strings.Join(append([]string{fmt.Sprintf(`{"type":"text","text":"reply %d"}`, w.turns)}, uses...), ",") + `]`
	turn, m := w.turn("assistant", content)
	r.raw = string(esjson.Set([]byte(r.raw), "text", esjson.Quote(nil, `{"tokensIn":10,"tokensOut":2,"cost":0.5}`)))
	micros := int64(500_000)
	w.money += micros
	w.went(turn, task.MessageChanged{Message: r.id, Body: task.Body{Raw: json.RawMessage(r.raw)}},
		task.UsageChanged{Turn: w.turns, Request: r.id, Input: 10, Output: 2, CostMicros: &micros}, task.TurnEnded{Turn: w.turns})
	w.head.ui, w.head.api = append(w.head.ui, r, t), append(w.head.api, m)
}

// calls closes the calls of the last reply, or some of them.
func (w *world) calls() {
	open := w.s.OpenCalls()
	if len(open) == 0 {
		w.reply()
		return
	}
	var results []string
	for _, c := range open {
		if c.Finished == nil {
			row, r := w.row("ask:tool", "{}")
			w.went(row, api.QuestionOpened{Question: "q" + c.ID, Kind: "approval", Call: c.ID, Message: r.id})
			w.head.ui = append(w.head.ui, r)
			if w.n("stops in the middle", 0, 5) == 0 {
				return
			}
			yes := true
			w.went(api.QuestionClosed{Question: "q" + c.ID, Approve: &yes, By: "t"}, task.ToolStarted{Call: c.ID, Name: "n", Replay: "never"})
			result := fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"of %d"}`, c.ID, w.s.Seq)
			w.went(task.ToolFinished{Call: c.ID, Name: "n", Outcome: "ok", Result: json.RawMessage(result)},
				task.FileChanged{Path: fmt.Sprint("f", w.n("file", 0, 2)), Source: "read_tool", Hash: fmt.Sprint(w.s.Seq)})
		}
		raw, err := c.Result()
		if err != nil {
			w.Fatal(err)
		}
		results = append(results, string(raw))
	}
	turn, m := w.turn("user", `[`+strings.Join(results, ",")+`]`)
	w.went(turn)
	w.head.api = append(w.head.api, m)
}

// truncate hides older messages as the agent does, or as older versions did.
func (w *world) truncate() {
	id := fmt.Sprint("T", w.s.Seq)
	api := w.s.API()
	raws := make([][]byte, len(api))
	for i, m := range api {
		raws[i] = m.Raw()
	}
	cut := contextwindow.CutOldest(raws, 0.5, id, 5)
	if len(cut.Hide) == 0 {
		return
	}
	if w.n("how", 0, 1) == 0 {
		w.coverCut(cut)
		return
	}
	mark := messageText{marker: id, raw: string(cut.Marker), own: true}
	add := w.adds(task.API, &mark).(task.MessageAdded) //nolint:forcetypeassert // it is one
	if cut.At < len(api) {
		add.Before = api[cut.At].ID
	}
	events := []task.Event{add}
	for _, i := range cut.Hide {
		events = append(events, task.MessageChanged{Message: api[i].ID, Body: task.Body{Raw: esjson.Set(raws[i], "truncationParent", esjson.Quote(nil, id))}})
		w.head.api[i].tag = id
	}
	w.went(events...)
	w.head.api = slices.Insert(w.head.api, cut.At, mark)
	row := messageText{own: true, marker: id, raw: fmt.Sprintf(`{"ts":%d,"type":"say","say":"sliding_window_truncation","contextTruncation":{"truncationId":%q}}`, w.ts, id)}
	w.went(w.adds(task.UI, &row))
	w.head.ui = append(w.head.ui, row)
}

// foreign is another program that wrote both files.
func (w *world) foreign() {
	var events []task.Event
	first := w.s.NextMessage()
	for _, h := range []task.History{task.UI, task.API} {
		list, added := &w.head.ui, fmt.Sprintf(`{%s"type":"say","say":"text","text":"outside %d"}`, w.stamp(), first)
		if h == task.API {
			list, added = &w.head.api, fmt.Sprintf(`{%s"role":"user","content":"outside %d"}`, w.stamp(), first)
		}
		name := fmt.Sprint("foreign", len(w.blobs))
		e := task.ForeignImported{Tool: "roo", History: h, Blob: name, Size: int64(len(added)), First: first}
		for _, m := range *list {
			e.Rows = append(e.Rows, task.ForeignRow{Message: m.id})
		}
		e.Rows = append(e.Rows, task.ForeignRow{Len: int64(len(added))})
		w.blobs[name] = added
		*list = append(*list, messageText{id: first, raw: added})
		first++
		events = append(events, e)
	}
	w.went(events...)
}

// fingerprint is all that a move of the head moves.
func fingerprint(s *task.State) string {
	var out strings.Builder
	for _, list := range [][]*task.Message{s.UI(), s.API()} {
		for _, m := range list {
			fmt.Fprintf(&out, "%d %s\n", m.ID, m.Raw())
		}
	}
	for _, c := range s.OpenCalls() {
		raw, err := c.Result()
		fmt.Fprintf(&out, "open %s %s %s %v\n", c.ID, c.Outcome(), raw, err)
	}
	for _, c := range s.Calls() {
		if m := s.Message(c.Message); m != nil && m.Hidden == "" {
			fmt.Fprintf(&out, "call %s %s\n", c.ID, c.Outcome())
		}
	}
	for _, q := range s.Questions {
		fmt.Fprintln(&out, "question", q.Question)
	}
	for _, f := range s.Files {
		fmt.Fprintf(&out, "%+v\n", f)
	}
	fmt.Fprintln(&out, s.Queue, s.Answered, s.Replies, s.Failures)
	return out.String()
}

func (w *world) move(e task.Rewound, more ...task.Event) {
	m := moved{seq: w.s.Seq + 1, before: w.head.copied(), was: fingerprint(w.s)}
	w.commit(append([]task.Event{e}, more...)...)
	m.is = fingerprint(w.s)
	w.done, w.again = append(w.done, m), nil
}

func (w *world) moved(after head) {
	w.head = after
	w.done[len(w.done)-1].after = after.copied()
}

func (w *world) check() {
	for h, want := range map[task.History][]string{task.UI: shown(w.head.ui), task.API: shown(w.head.api)} {
		list := w.s.UI()
		if h == task.API {
			list = w.s.API()
		}
		got := []string{}
		for _, m := range list {
			got = append(got, inOrder(string(m.Raw())))
		}
		for i, raw := range want {
			want[i] = inOrder(raw)
		}
		if h == task.UI { // rows have no tags
			want = want[:0:0]
			for _, m := range w.head.ui {
				want = append(want, inOrder(m.raw))
			}
		}
		if !slices.Equal(got, want) {
			w.Fatalf("%s history:\n%s\nwant\n%s", h, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if w.s.Usage.CostMicros != w.money || len(w.s.Problems) > 0 {
		w.Fatalf("spent %d, want %d; problems %v", w.s.Usage.CostMicros, w.money, w.s.Problems)
	}
	raws, err := w.s.RawAPI()
	if err != nil {
		w.Fatal(err)
	}
	request, _, err := contextwindow.Build(raws, contextwindow.For("anthropic"))
	if err == nil {
		err = apirules.Validate(request)
	}
	if err != nil && !errors.Is(err, contextwindow.ErrEmpty) {
		w.Fatalf("the next request: %v\n%s", err, raws)
	}
	w.sent(request)
}

// sequences is how many random stories are told: by the environment, fewer with -short.
func sequences(t *testing.T) string {
	if n, err := strconv.Atoi(os.Getenv("ROOST_SEQUENCES")); err == nil && n > 0 {
		return strconv.Itoa(n)
	}
	if testing.Short() {
		return "500"
	}
	return "4000"
}

// TestTheHistoriesStayAligned tells random stories of sending, tools, edits, deletions,
// rewinds, undo, redo, branches, truncation, condensing, other programs' writes, forks and kills.
// ROOST_SEQUENCES=1000000 tells a million.
func TestTheHistoriesStayAligned(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set(sequences(t)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, blobs: blobs{}, ts: 1000}
		w.s = task.New(w.blobs)
		w.went(task.Created{Task: "t"})
		w.say("do it")
		for range w.n("steps", 1, 14) {
			switch w.n("what", 0, 17) {
			case 0:
				w.say("words")
			case 1, 2, 3:
				w.reply()
			case 4, 5, 6:
				w.calls()
			case 7:
				w.turnsBack()
			case 8:
				w.remove()
			case 9, 10:
				w.rewind()
			case 11:
				w.back()
			case 12:
				w.forth()
			case 13:
				w.truncate()
			case 14:
				w.foreign()
			case 15:
				w.condense()
			case 16:
				w.uncover()
			default:
				w.branch()
			}
			if w.n("crash", 0, 9) == 0 {
				w.crash()
				w.fork()
			}
			w.check()
		}
	})
}
