package task_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

func request(ts int) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1,\"cost\":0.1}"}`, ts)
}

func feedback(ts int, text string) string {
	return strings.Replace(say(ts, text), `"say":"text"`, `"say":"user_feedback"`, 1)
}

func turn(role, text string, ts int) string {
	return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"ts":%d}`, role, text, ts)
}

func listed(rows ...string) (out [][]byte) {
	for _, r := range rows {
		out = append(out, []byte(r))
	}
	return out
}

// Where times say what came when, a reply goes with its rows; where they do not, it is
// told by the order of requests, or by words.
func TestWhatAnotherProgramsRowTakesAlong(t *testing.T) {
	ui := listed(say(1, "do it"), request(10), say(11, "first"), feedback(20, "more"), request(30), say(31, "second"))
	api := listed(turn("user", "do it", 2), turn("assistant", "first", 15), turn("user", "more", 22), turn("assistant", "second", 35))
	without := func(list [][]byte) (out [][]byte) {
		for _, raw := range list {
			text := string(raw)
			if i := strings.LastIndex(text, `,"ts":`); i > 0 {
				text = text[:i] + "}"
			}
			out = append(out, []byte(text))
		}
		return out
	}
	count := listed(say(1, "do it"), request(90), say(91, "one"), feedback(92, "two"), request(40), say(41, "three")) // words that no message has
	back := listed(say(1, "do it"), request(90), say(91, "first"), feedback(92, "more"), request(40), say(41, "second"))
	for _, c := range []struct {
		name    string
		ui, api [][]byte
		row     int
		keep    bool
		left    int // of the model's side
	}{
		{"the first row", ui, api, 0, false, 0},
		{"a request", ui, api, 1, false, 1},
		{"a reply's words", ui, api, 2, false, 1},
		{"a person's words leave the reply before", ui, api, 3, false, 2},
		{"kept words keep the message that holds them", ui, api, 3, true, 3},
		{"the second reply", ui, api, 5, false, 3},
		{"no times on the model's side", ui, without(api), 5, false, 3},
		{"no times, and all of it", ui, without(api), 0, false, 0},
		{"no times, and a person's words", ui, without(api), 3, false, 2},
		{"the clock went back", back, api, 5, false, 3},
		{"the clock went back before a request", back, api, 4, false, 3},
		{"the clock went back, and only requests are counted", count, api, 5, false, 3},
		{"requests are counted before a request", count, api, 4, false, 3},
		{"the clock went back, and a request row is missing", append(back[:1:1], back[2:]...), api, 4, false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fromRoo(t, c.ui, c.api)
			e, err := rewind.At(w.State, c.row, c.keep)
			if err != nil {
				t.Fatal(err)
			}
			w.then(e)
			rows := c.row
			if c.keep {
				rows++
			}
			if len(w.UI()) != rows || len(w.API()) != c.left {
				t.Errorf("%d rows, %d of the model's: %s", len(w.UI()), len(w.API()), ids(w.API()))
			}
		})
	}
}

// Another program's rows without requests, and messages without times: they belong together by the ids of calls, then by words and by what
// calls are for. What nothing relates is told.
func TestRowsAndMessagesBelongTogetherByIDsThenWords(t *testing.T) {
	ui := []string{
		`{"ts":1,"type":"ask","ask":"request_limit_reached","text":"go on?"}`,
		`{"ts":2,"type":"say","say":"text","text":"Make a greeting page"}`,
		`{"ts":3,"type":"ask","ask":"tool","tool":"write_to_file","path":"hello.html","approvalState":"approved"}`,
		`{"ts":4,"type":"say","say":"text","text":"The page is written, all is done."}`,
		`{"ts":5,"type":"say","say":"completion_result","text":"I made the page."}`,
	}
	api := []string{
		`{"role":"user","content":"<task>\nMake a greeting page\n</task>"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"write_to_file","input":{"path":"hello.html","content":"<h1>"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"written"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"The page is written, all is done."}]}`,
		`{"role":"user","content":[{"type":"text","text":"[ERROR] use a tool"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"attempt_completion","input":{"result":"I made the page."}}]}`,
	}
	byID := append([]string{}, ui...)
	byID[2] = `{"ts":3,"type":"ask","ask":"tool","text":"{\"tool\":\"newFileCreated\",\"id\":\"toolu_1\"}"}`
	strange := append([]string{}, ui[:2]...)
	strange = append(strange, say(3, "words that no message has"), say(4, "nor these"), say(5, "nor those"))
	for name, c := range map[string]struct {
		rows                 []string
		row, left, unmatched int
		keep                 bool
	}{
		"a call's row, by its path":     {ui, 2, 1, 0, false},
		"a call's row, by its id":       {byID, 2, 1, 0, false},
		"words":                         {ui, 3, 3, 1, false}, // the result before them has no row
		"the end":                       {ui, 4, 5, 1, false},
		"the call's row stays":          {ui, 2, 3, 1, true},
		"the first words stay":          {ui, 1, 1, 0, true},
		"nothing that a message has":    {strange, 3, 6, 5, false},
		"what it has stays all the way": {strange, 2, 6, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := fromRoo(t, listed(c.rows...), listed(api...))
			e, err := rewind.At(w.State, c.row, c.keep)
			if err != nil {
				t.Fatal(err)
			}
			w.then(e)
			if len(w.API()) != c.left || e.Unmatched != c.unmatched {
				t.Errorf("%d messages are left, want %d; %d could not be matched, want %d", len(w.API()), c.left, e.Unmatched, c.unmatched)
			}
		})
	}
	w := fromRoo(t, listed(ui...), listed(api...))
	e, err := rewind.Turns(w.State, 1)
	if err != nil {
		t.Fatal(err)
	}
	if w.then(e); len(w.UI()) != 4 || len(w.API()) != 5 {
		t.Errorf("a turn back leaves %d rows and %d messages", len(w.UI()), len(w.API()))
	}
}

// Nothing relates the rows of a large task to its messages. A turn back does not compare each row with each message.
func TestATurnBackOfALargeTask(t *testing.T) {
	const n = 60_000
	var ui, api []string
	for i := range n {
		ui = append(ui, say(i+1, fmt.Sprintf("row %d", i)))
		api = append(api, fmt.Sprintf(`{"role":"assistant","content":"reply %d","ts":%d}`, i, i+1))
	}
	w := fromRoo(t, listed(ui...), listed(api...))
	for _, turns := range []int{1, n / 2, n} {
		begun := time.Now()
		if _, err := rewind.Turns(w.State, turns); err != nil || time.Since(begun) > 5*time.Second {
			t.Errorf("%d turns back: got error %v after %s, want none within 5 s", turns, err, time.Since(begun))
		}
	}
}

// Cline's messages have no times, and its rows record how many messages the model's history held: that decides what goes.
func TestClinesRecordsDecideWhatGoes(t *testing.T) {
	row := func(kind, text string, newest int) string {
		typ, name, _ := strings.Cut(kind, ":")
		return fmt.Sprintf(`{"ts":%d,"type":%q,%q:%q,"text":%q,"conversationHistoryIndex":%d}`, 100+newest, typ, typ, name, text, newest)
	}
	ui := []string{
		row("say:text", "fix it, or say yes", -1), row("say:api_req_started", "{}", -1), row("say:checkpoint_created", "", -1),
		row("say:reasoning", "a thought", 0), row("say:text", "a look at it", 0), row("ask:tool", "{}", 0), row("say:checkpoint_created", "", 1),
		row("say:api_req_started", "{}", 1), row("say:text", "", 2), row("ask:followup", "{}", 2),
		row("say:user_feedback", "yes", 3), row("say:api_req_started", "{}", 3), row("say:text", "it is fixed", 4),
	}
	var messages []string
	for i, text := range []string{"<task>fix it, or say yes</task>", "<thinking>a thought</thinking>a look at it", "[read_file] Result: x", "<ask/>", "[ask] Result: yes", "<done/>it is fixed"} {
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text))
	}
	of := func() *foldedLog { return fromRoo(t, listed(ui...), listed(messages...)) }
	for row, left := range []int{0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 4, 5, 5} {
		w := of()
		e, err := rewind.At(w.State, row, false)
		if err != nil {
			t.Fatal(err)
		}
		if w.then(e); len(w.API()) != left || e.Unmatched != 0 {
			t.Errorf("from row %d: %d messages are left, want %d; %d could not be matched, want 0", row, len(w.API()), left, e.Unmatched)
		}
	}
	for row, gone := range map[int][2]int{4: {1, 3}, 9: {3, 4}, 10: {4, 5}, 12: {5, 6}} { // a result goes with its call
		w := of()
		want := ids(slices.Concat(w.API()[:gone[0]], w.API()[gone[1]:]))
		e, err := rewind.Message(w.State, row)
		if err != nil {
			t.Fatal(err)
		}
		if w.then(e); ids(w.API()) != want {
			t.Errorf("without row %d: the model has %s, want %s", row, ids(w.API()), want)
		}
	}
	messages = messages[:3] // another program cut them
	w := of()
	e, err := rewind.At(w.State, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	if w.then(e); len(w.API()) != 3 {
		t.Errorf("of a history that was cut, %d messages are left, want 3", len(w.API()))
	}
}

// One message with a late time stamp takes nothing along that came before it, and a row without a time is as late as the next one.
func TestALateTimeTakesNothingThatStays(t *testing.T) {
	ui := listed(say(1, "do it"), request(10), say(11, "the first reply"), feedback(20, "more of it"), request(30), say(31, "the second reply"), request(40), say(44, "the third reply"))
	api := listed(turn("user", "do it", 9000), turn("assistant", "the first reply", 15), turn("user", "more of it", 32), turn("assistant", "the second reply", 8000), turn("user", "on", 42), turn("assistant", "the third reply", 45))
	for row, left := range map[int]int{2: 1, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5} {
		w := fromRoo(t, ui, api)
		e, err := rewind.At(w.State, row, false)
		if err != nil {
			t.Fatal(err)
		}
		if w.then(e); len(w.API()) != left || e.Unmatched != 0 {
			t.Errorf("from row %d: %d messages are left, want %d; %d could not be matched", row, len(w.API()), left, e.Unmatched)
		}
	}
	undated := listed(say(100, "r100"), `{"type":"say","say":"text","text":"x"}`, say(300, "r300"))
	w := fromRoo(t, undated, listed(turn("user", "u110", 110), turn("assistant", "a310", 310)))
	e, err := rewind.At(w.State, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if w.then(e); len(w.API()) != 1 {
		t.Errorf("%d messages are left", len(w.API()))
	}
}

// A call of a reply that stays and was finished after the cut is not finished any more.
// It had started, so nobody knows what it did, and it is not simply run again.
func TestAnOutcomeThatIsRewoundIsUnknown(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, `{"role":"user","content":"do it"}`))
	w.then(ui(3, request(3)), apiMessage(4, assistant("c1", "c2")))
	w.then(ui(5, `{"ts":5,"type":"ask","ask":"tool"}`)).then(task.ToolStarted{Call: "c1", Name: "n", Replay: "never"}).then(finished("c1", "one"))
	w.then(ui(6, `{"ts":6,"type":"ask","ask":"tool"}`), api.QuestionOpened{Question: "q2", Kind: "approval", Call: "c2", Message: 6})
	before := dump(w.State)
	e, err := rewind.At(w.State, 2, false)
	if err != nil || len(e.Calls) != 1 || e.Calls[0] != "c1" || len(e.Questions) != 1 {
		t.Fatalf("got %+v, %v, want no error and len(e.Calls) = 1 and e.Calls[0] = \"c1\" and len(e.Questions) = 1",
			e, err)
	}
	w.then(e)
	moved := w.Seq
	if w.then(task.Undone{Undoes: moved}); w.Call("c1").Rewound || w.restored(0).Call("c1").Rewound {
		t.Error("after the undo c1 still counts as taken back")
	}
	w.then(task.Undone{Redoes: moved})
	if !w.Call("c1").Rewound || w.Call("c2").Rewound || !w.restored(0).Call("c1").Rewound {
		t.Error("it is not told which calls were taken back")
	}
	if got := w.Call("c1").Outcome(); got != task.OutcomeUnknown || w.Call("c2").Outcome() != task.OutcomeNotStarted || len(w.Questions) > 0 {
		t.Errorf("c1 is %s, questions %v", got, w.Questions)
	}
	// Another end of it does not get into the old branch.
	w.then(finished("c1", "another"), answers(7, "c1"))
	w.then(task.Rewound{Why: "branch", Branch: w.Branches[0].Seq})
	for name, s := range map[string]*task.State{"folded": w.State, "again": w.again(0), "restored": w.restored(0)} {
		raw, err := s.Call("c1").Result()
		if string(raw) != resultOf("c1", "one") || err != nil || ids(s.API()) != "2 4" || s.Question("q2") == nil {
			t.Errorf("%s: %s, %v, api %s", name, raw, err, ids(s.API()))
		}
	}
	w.then(task.Undone{Undoes: w.Seq})
	s := w.restored(0)
	e2 := encode(t, s.Seq+1, task.Rewound{Why: "branch", Branch: s.Branches[0].Seq})
	if err := s.Apply(e2); err != nil {
		t.Fatal(err)
	}
	if raw, err := s.Call("c1").Result(); string(raw) != resultOf("c1", "one") || err != nil {
		t.Errorf("restored, then gone to the branch: %s, %v", raw, err)
	}
	if before == dump(w.State) {
		t.Error("the branch left no trace")
	}
}

func TestFilesAreKnownAsTheyWere(t *testing.T) {
	known := func(s *task.State) string {
		return string(task.MetadataJSON(s.Files))
	}
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), task.FileChanged{Path: "a", Source: "read_tool"})
	one := known(w.State)
	w.then(ui(2, say(2, "x")), task.FileChanged{Path: "a", Source: "roo_edited"}, task.FileChanged{Path: "b", Source: "read_tool"})
	two := known(w.State)
	e, err := rewind.At(w.State, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	w.then(e)
	at := w.Seq
	if d := cmp.Diff(one, known(w.State)); d != "" {
		t.Error(d)
	}
	w.then(task.Undone{Undoes: at})
	for name, s := range map[string]*task.State{"folded": w.State, "restored": w.restored(0)} {
		if d := cmp.Diff(two, known(s)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
	w.then(task.FileChanged{Path: "b", Source: "user_edited"})
	if w.Moved <= w.Actions.Undone[0].Then {
		t.Error("what came after would be taken back too")
	}
}

// Condensing after an overflow, Roo does not say in the row which summary it is.
func TestASummaryGoesWithItsRow(t *testing.T) {
	row := `{"ts":40,"type":"say","say":"condense_context","contextCondense":{"cost":0.1}}`
	api := listed(strings.Replace(turn("user", "do it", 2), "}]", `}],"condenseParent":"C"`, 1), `{"role":"user","content":"summary","ts":3,"isSummary":true,"condenseId":"C"}`, turn("assistant", "on", 50))
	w := fromRoo(t, listed(say(1, "do it"), row, say(49, "on")), api)
	e, err := rewind.At(w.State, 1, false)
	if err != nil || rewind.Lifts(w.State, e) != 1 {
		t.Fatalf("got %+v, %v, want no error and rewind.Lifts(w.State, e) = 1", e, err)
	}
	w.then(e)
	if got := string(w.API()[0].Raw()); len(w.API()) != 1 || strings.Contains(got, "condenseParent") {
		t.Errorf("got %s, want len(w.API()) = 1 and not strings.Contains(got, \"condenseParent\")", got)
	}
}

func TestOneMessageGoesWithWhatBelongsToIt(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, turn("user", "do it", 1)))
	w.then(ui(3, request(3))).then(ui(4, say(4, "first")), apiMessage(5, assistant("c1"))).then(finished("c1", "r")).then(apiMessage(6, results("c1")), ui(7, request(7)))
	w.then(ui(8, say(8, "second")), apiMessage(9, turn("assistant", "second", 9))).then(ui(10, feedback(10, "thanks")), apiMessage(11, turn("user", "thanks", 10)))
	for row, want := range map[int]string{1: "2 9 11", 2: "2 9 11", 4: "2 5 6 11", 5: "2 5 6 9"} {
		e, err := rewind.Message(w.State, row)
		if err != nil {
			t.Fatal(err)
		}
		w.then(e)
		if got := ids(w.API()); got != want {
			t.Errorf("without row %d: %s, want %s", row, got, want)
		}
		w.then(task.Undone{Undoes: w.Seq})
	}
	if _, err := rewind.Message(w.State, 0); !errors.Is(err, rewind.ErrFirstMessage) {
		t.Errorf("the task itself: %v", err)
	}
	w.then(ui(12, feedback(12, "and this")), apiMessage(13, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":""},{"type":"text","text":"and this"}]}`))
	if _, err := rewind.Message(w.State, 6); !errors.Is(err, rewind.ErrShared) {
		t.Errorf("words beside a result: %v", err)
	}
}

// Older programs write calls and their results as text; Cline also writes results of calls so.
func TestAResultThatIsTextGoesWithItsCall(t *testing.T) {
	result := `{"role":"user","content":[{"type":"text","text":"[read_file for 'a.go'] Result:"},{"type":"text","text":"package a"}],"ts":6}`
	for name, c := range map[string]struct{ reply, next, want string }{
		"a call as text":         {turn("assistant", "<read_file><path>a.go</path></read_file>", 5), result, "2 8"},
		"a call":                 {assistant("c1"), result, "2 8"},
		"the user's own turn":    {turn("assistant", "done", 5), turn("user", "[the list] of results", 6), "2 6 8"},
		"result as plain string": {turn("assistant", "<read_file>", 5), `{"role":"user","content":"[read_file for 'a.go'] Result:\npackage a","ts":6}`, "2 8"},
	} {
		w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, turn("user", "do it", 1)))
		w.then(ui(3, request(3))).then(ui(4, say(4, "first")), apiMessage(5, c.reply)).then(apiMessage(6, c.next), ui(7, request(7))).then(apiMessage(8, turn("assistant", "second", 8)))
		e, err := rewind.Message(w.State, 2)
		if err != nil {
			t.Fatal(err)
		}
		if w.then(e); ids(w.API()) != c.want {
			t.Errorf("%s: got %s, want %s", name, ids(w.API()), c.want)
		}
	}
}

// A summary that came after a reply stays when the reply goes, and goes alone with its own row.
func TestASummaryIsNoPartOfTheTurnBeforeIt(t *testing.T) {
	for kind, id := range map[string]string{
		"condense_context": `"contextCondense":{"condenseId":"C"}`, "sliding_window_truncation": `"contextTruncation":{"truncationId":"C"}`,
	} {
		w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, turn("user", "do it", 1)))
		w.then(ui(3, request(3))).then(ui(4, say(4, "first")), apiMessage(5, assistant("c1"))).then(finished("c1", "r")).then(apiMessage(6, results("c1")))
		w.then(apiMessage(7, `{"role":"user","content":"s","isSummary":true,"condenseId":"C","isTruncationMarker":true,"truncationId":"C"}`), ui(8, fmt.Sprintf(`{"ts":8,"type":"say","say":%q,%s}`, kind, id)))
		w.then(ui(9, request(9))).then(ui(10, say(10, "second")), apiMessage(11, turn("assistant", "second", 10)))
		for row, want := range map[int]string{2: "1 8 9 10, 2 7 11", 3: "1 3 4 9 10, 2 5 6 11", 5: "1 3 4 8, 2 5 6 7"} {
			e, err := rewind.Message(w.State, row)
			if err != nil {
				t.Fatal(err)
			}
			w.then(e)
			if got := ids(w.UI()) + ", " + ids(w.API()); got != want {
				t.Errorf("%s: without row %d there are %s, want %s", kind, row, got, want)
			}
			w.then(task.Undone{Undoes: w.Seq})
		}
	}
}

// What a person said beside the results of a turn is theirs, and stays when the turn goes.
func TestWordsBesideResultsStayWhenTheTurnGoes(t *testing.T) {
	const told = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"},{"type":"text","text":"mind the tests"}]}`
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, turn("user", "do it", 1)))
	w.then(ui(3, request(3))).then(ui(4, say(4, "first")), apiMessage(5, assistant("c1"))).then(finished("c1", "r"))
	w.then(ui(6, feedback(6, "mind the tests")), apiMessage(7, told)).then(ui(8, request(8))).then(apiMessage(9, turn("assistant", "second", 9)))
	e, err := rewind.Message(w.State, 2)
	if err != nil {
		t.Fatal(err)
	}
	if w.then(e); ids(w.API()) != "2 7 9" || ids(w.UI()) != "1 6 8" {
		t.Errorf("left: %s and %s", ids(w.UI()), ids(w.API()))
	}
}

// A run that ended between its results and the next request leaves results without words: after a rewind, or at a limit.
func TestResultsGoWithTheirCallBeforeWordsOfANewRun(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "do it")), apiMessage(2, turn("user", "do it", 1)))
	w.then(ui(3, request(3))).then(ui(4, say(4, "first")), apiMessage(5, assistant("c1"))).then(finished("c1", "r")).then(apiMessage(6, results("c1")))
	w.then(ui(7, feedback(7, "go on")), apiMessage(8, turn("user", "go on", 7))).then(ui(9, request(9))).then(apiMessage(10, turn("assistant", "second", 9)))
	e, err := rewind.Message(w.State, 2)
	if err != nil {
		t.Fatal(err)
	}
	if w.then(e); ids(w.API()) != "2 8 10" || ids(w.UI()) != "1 7 9" {
		t.Errorf("got rows %s and messages %s, want 1 7 9 and 2 8 10", ids(w.UI()), ids(w.API()))
	}
}

// A log may be damaged or made by somebody else.
func TestMovesThatCannotBe(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}, ui(1, say(1, "a")), ui(2, say(2, "b")))
	for _, e := range []task.Event{
		task.Undone{Undoes: 1}, task.Undone{}, task.Undone{Undoes: 1, Redoes: 1}, task.Rewound{Branch: 7},
		task.Rewound{Hide: []task.Run64{{2, 1}}}, task.Rewound{Hide: []task.Run64{{0, 1}}}, task.Rewound{Hide: []task.Run64{{2, 2}, {1, 1}}},
	} {
		if err := w.try(e); err == nil {
			t.Errorf("%+v was folded", e)
		}
	}
	w.then(task.Rewound{Why: "rewind", Hide: []task.Run64{{2, 1 << 60}}, Calls: []string{"none"}, Questions: []string{"none"}, Inputs: []string{"none"}, Lift: []string{""}, Files: 1})
	if ids(w.UI()) != "1" {
		t.Errorf("ui %s", ids(w.UI()))
	}
}

// A message that got a tag on another branch keeps it where the summary is visible, too.
func TestATagOfAnotherBranchStaysWithItsSummary(t *testing.T) {
	const tagged = `{"role":"user","content":"do it","condenseParent":"C"}`
	w := tell(t, task.Created{Task: "t"}, apiMessage(1, `{"role":"user","content":"do it"}`),
		apiMessage(2, `{"role":"user","content":"sum","isSummary":true,"condenseId":"C"}`), apiMessage(3, turn("assistant", "on", 50)))
	w.then(task.Rewound{Why: "rewind", To: 3, Hide: []task.Run64{{3, 3}}})
	moved := w.Seq
	w.then(task.MessageChanged{Message: 1, Body: task.Body{Raw: []byte(tagged)}}).then(task.Undone{Undoes: moved})
	if got := string(w.API()[0].Raw()); got != tagged || len(w.API()) != 3 {
		t.Errorf("got %s of %d messages, want %s of 3", got, len(w.API()), tagged)
	}
}
