package chat

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

func TestSettingsOfANewTask(t *testing.T) {
	d := newDesk(t)
	d.modes = []string{"code", "ask", "architect"}
	c := talking(t, d)
	for _, tt := range []struct{ line, shows string }{
		{"/mode", "  code about code"},
		{"/mode aks", "✗ there is no mode aks; ask is one (/mode lists them)"},
		{"/mode zzzzzz", "✗ there is no mode zzzzzz (/mode lists them)"},
		{"/mode ask", "mode ask"},
		{"/mode", "* ask about ask"},
		{"/model", "model from the settings"},
		{"/model m7", "model m7"},
		{"/model", "model m7"},
		{"/profile nope", "✗ there is no profile nope; there are none"},
		{"/approve most", "✗ want /approve ask, read, edits or all"},
		{"/approve", "unasked: ask; of ask, read, edits, all"},
		{"/approve edits", "unasked: edits, reading everywhere and writing in the workspace"},
		{"/limits", "limits as the task has them"},
		{"/limits turns=3 cost=0.50", "limits turns=3 cost=0.50"},
		{"/limits idle=10m total=2h", "limits turns=3 cost=0.50 idle=10m0s total=2h0m0s"},
		{"/limits turns=0", "limits turns=0"},
	} {
		c.idle()
		from := len(c.text())
		c.Line(tt.line)
		within(t, tt.line+" shows "+tt.shows, func() bool {
			return strings.Contains(c.text()[from:], tt.shows+"\n") || strings.Contains(c.text()[from:], tt.shows)
		})
	}
	c.idle()
	c.Line("begin")
	c.did("start begin", `"mode":"ask"`, `"model":"m7"`, `"approve":"edits"`, `"max_turns":0`, `"max_cost":"0.50"`, `"idle_timeout":"10m0s"`, `"total_timeout":"2h0m0s"`)
}

// Of a task that is there, what was changed goes with its next run, once.
func TestSettingsOfTheNextRun(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	c.Line("/model")
	c.shows("model m1")
	c.Line("/mode")
	c.shows("mode code")
	c.Line("/model m2")
	c.Line("/limits turns=5")
	c.shows("limits turns=5")
	c.Line("go on")
	c.did("resume t1", `"model":"m2"`, `"max_turns":5`, `"text":"go on"`)
	d.replies("t1", "run1", "done")
	c.idle()
	c.Line("and on")
	if call := c.did("send t1", "and on"); strings.Contains(call, "m2") {
		t.Errorf("it changes the task again: %s", call)
	}
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	c.Line("/model m3")
	c.shows("model m3, from the next run on")
	c.Line("/approve read")
	c.shows("unasked: read, reading everywhere; from the next run on")
}

func TestLimitsThatAreNone(t *testing.T) {
	for _, word := range []string{"turns", "turns=", "turns=x", "turns=-1", "turns=1.5", "cost=-1", "cost=much", "idle=10", "idle=-1s", "total=soon", "words=3", "=3", ""} {
		var l api.Limits
		if err := limit(&l, word); err == nil || !strings.Contains(err.Error(), "0 takes a limit away") {
			t.Errorf("%q: got %v, want an error and strings.Contains(err.Error(), \"0 takes a limit away\")", word, err)
		}
		if l != (api.Limits{}) {
			t.Errorf("%q changes %+v", word, l)
		}
	}
	var l api.Limits
	for _, word := range []string{"turns=0", "cost=0", "idle=0", "total=0"} {
		if err := limit(&l, word); err != nil {
			t.Errorf("%q: got %v, want no error", word, err)
		}
	}
	if got := limitsText(l); got != "limits turns=0 cost=0.00 idle=0s total=0s" {
		t.Errorf("taken away they are %q", got)
	}
}

// What a command wants is said, and nothing is done.
func TestWordsThatCommandsWant(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	before := len(d.all())
	for line, want := range map[string]string{
		"/search":       "want /search WORDS",
		"/show x":       "want /show N, a number of messages",
		"/show 0":       "want /show N",
		"/title":        "want /title WORDS",
		"/edit #3":      "want /edit #12 WORDS",
		"/edit":         "want /edit #12 WORDS",
		"/export a b c": "want /export [FORM] [FILE]",
		"/queue 1":      "want /queue N WORDS, or /queue drop N",
		"/queue x y":    "want /queue N WORDS",
		"/queue drop":   "want /queue N WORDS",
		"/queue":        "nothing is queued",
		"/answer x":     "no question is open",
		"/abort":        "no run works on the task",
		"/abort now":    "no run works on the task",
		"/help rewin":   "there is no command /rewin",
		"/new words":    "/new takes no words after it",
		"/retry words":  "/retry takes no words after it",
	} {
		c.Line(line)
		c.shows(want)
	}
	c.idle()
	for _, call := range d.all()[before:] {
		t.Errorf("it did %s", call)
	}
}

func TestHelpOfAllCommands(t *testing.T) {
	c := talking(t, newDesk(t))
	c.Line("/help")
	c.shows("/help [COMMAND]", "/reject [WHY]", "/quit", "!COMMAND", "write in $VISUAL or $EDITOR", "allow it once")
	for line := range strings.SplitSeq(c.text(), "\n") {
		if row(line).columns() > 120 {
			t.Errorf("a line of %d columns: %s", row(line).columns(), line)
		}
	}
	c.Line("/help compact")
	c.shows("/condense [WORDS]: have older history summarised, looking to WORDS; also /compact")
	c.Line("/help /rewind")
	c.shows("/rewind [REF] [--files]: take the histories back")
	seen := map[string]bool{}
	for _, cmd := range commands() {
		for _, name := range append([]string{cmd.name}, cmd.also...) {
			if seen[name] {
				t.Errorf("/%s is there twice", name)
			}
			seen[name] = true
		}
	}
}

func TestAbortAndRetry(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	c.Line("/retry")
	c.shows("a run works on the task already")
	c.Line("/abort")
	c.did("cancel t1")
	d.emit("t1", "run.ended", `"run":"run1","outcome":"cancelled"`)
	c.idle()
	c.Line("/retry")
	c.did("resume t1", `"yes":true`)
	c.when("at work", func(st state) bool { return st.Working })
	d.replies("t1", "run2", "done")
	c.idle()
	d.mu.Lock()
	d.refuse = errNotNow
	d.mu.Unlock()
	c.Line("/retry")
	c.shows("✗ " + errNotNow.Error())
}

func TestAForkIsGoneOnWith(t *testing.T) {
	d := newDesk(t)
	d.says["fork"] = Said{Out: "t5  4 messages, 2 for the model\n"}
	c := newWorkingChat(t, d)
	d.replies("t1", "run1", "done")
	c.idle()
	c.Line("/fork ~2")
	c.did("roost fork t1 --at ~2")
	c.shows("task t5, forked from t1")
	c.when("there", func(st state) bool { return st.Task == "t5" && !st.Busy })
	d.says["fork"] = Said{Err: "roost: fork\n  no such message\n", Code: 5}
	c.Line("/fork #99")
	c.shows("no such message")
	c.idle()
	if c.Task() != "t5" {
		t.Errorf("the task is %s", c.Task())
	}
	if calls := strings.Join(d.all(), "\n"); strings.Count(calls, "#99") != 1 { // the second one could make a fork that nobody turns to
		t.Errorf("the fork that failed was asked for more than once:\n%s", calls)
	}
}

// A command right behind the end of a run waits until the run has let its task go.
func TestACommandWaitsForTheEndOfARun(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.replies("t1", "run1", "done")
	c.idle()
	d.mu.Lock()
	d.says["undo"] = Said{Err: "busy", Code: busy}
	d.mu.Unlock()
	c.Line("/undo")
	within(t, "it is tried again", func() bool {
		n := 0
		for _, call := range d.all() {
			if call == "roost undo t1" {
				n++
			}
		}
		return n > 2
	})
	d.mu.Lock()
	d.says["undo"] = Said{Out: "taken back\n"}
	d.mu.Unlock()
	c.shows("taken back")
	c.idle()
	if strings.Contains(c.text(), "busy") {
		t.Errorf("it complains:\n%s", c.text())
	}
}
