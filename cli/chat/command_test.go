package chat

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// Nothing that begins with one "/" is ever sent, unless it names a prompt of the
// person's.
func TestOnlyASlashMakesACommand(t *testing.T) {
	for _, tt := range []struct{ line, call, not, shows string }{
		{"/rewnid", "", "start", "there is no command /rewnid; /rewind is one"},
		{"/xyzzy plugh", "", "start", "there is no command /xyzzy (/help"},
		{"/rev", "", "start", "/review is one"},
		{"/rew", "", "start", "/rewind is one"},
		{"//etc/hosts is odd", "start /etc/hosts is odd", "", ""},
		{"status", "start status", "", ""},
		{"clear the cache", "start clear the cache", "", ""},
		{"/review the tests", "start /review the tests", "", ""},
		{" /help", "start  /help", "", ""},
		{"/undo", "", "roost", "needs a task, and there is none yet"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			d := newDesk(t)
			d.prompts = []string{"review"}
			c := talking(t, d)
			c.Line(tt.line)
			if tt.call != "" {
				c.did(tt.call)
			}
			if tt.shows != "" {
				c.shows(tt.shows)
			}
			for _, call := range d.all() {
				if tt.not != "" && strings.HasPrefix(call, tt.not) {
					t.Errorf("it did %s", call)
				}
			}
		})
	}
}

// A command of the chat does what the command of roost does.
func TestCommandsAreThoseOfRoost(t *testing.T) {
	for line, want := range map[string]string{
		"/title The fence and the shed": "roost rename -- t1 The fence and the shed",
		"/tag +a -b":                    "roost tag t1 +a -b",
		"/tree":                         "roost show --tree t1",
		"/context":                      "roost show --context t1",
		"/cost":                         "roost show --usage t1",
		"/usage --by model":             "roost usage --by model",
		"/undo":                         "roost undo t1",
		"/redo":                         "roost redo t1",
		"/rewind":                       "roost rewind t1",
		"/rewind #12":                   "roost rewind t1 --to=#12",
		"/rewind ~2 --files --dry-run":  "roost rewind t1 --to=~2 --files --dry-run",
		"/rewind --files":               "roost rewind t1 --files",
		"/compact the 'test results'":   "roost condense t1 --keep=the 'test results'",
		"/checkpoint":                   "roost checkpoint save t1",
		"/checkpoint list":              "roost checkpoint list t1",
		"/restore c3":                   "roost checkpoint restore t1 c3 --dry-run",
		"/restore c3 --yes":             "roost checkpoint restore t1 c3 --yes",
		"/diff c3 now":                  "roost checkpoint diff t1 c3 now",
		"/files":                        "roost files t1",
		"/export html":                  "roost export t1 --format=html --output=t1.html",
		"/export archive":               "roost export t1 --format=archive --output=t1.zip",
		`/export md "my file.md"`:       "roost export t1 --format=md --output=my file.md",
		"/search --in the fence":        "roost search -- --in the fence",
		"/tasks the fence":              "roost list --limit 15 --query the fence",
		"/show 3":                       "roost show t1 --tail 3",
	} {
		t.Run(line, func(t *testing.T) {
			d := newDesk(t)
			c := talking(t, d, func(o *Options) { o.Task = "t1" })
			c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
			c.Line(line)
			c.did(want)
			c.idle()
			calls := d.all()
			if got := calls[len(calls)-1]; got != want {
				t.Errorf("it did %q, want %q", got, want)
			}
		})
	}
}

func TestWhatFailsIsShownOnce(t *testing.T) {
	d := newDesk(t)
	d.says["undo"] = Said{Err: "roost: undo\n  nothing was done\n", Code: 5}
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	c.Line("/undo")
	c.shows("roost: undo\n  nothing was done")
	c.idle()
	if n := strings.Count(c.text(), "nothing was done"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

func TestNothingIsRewoundUnderARun(t *testing.T) {
	for _, line := range []string{"/rewind", "/edit #3 x", "/condense", "/restore c1 --yes"} {
		d := newDesk(t)
		c := newWorkingChat(t, d)
		c.Line(line)
		c.shows("a run works on the task: stop it first (Esc)")
	}
}

func TestAnEditGoesOnFromThere(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	c.Line("/edit #3 use the other file")
	c.did("roost rewind t1 --to=#3 --edit=use the other file")
	c.did("resume t1", `"yes":true`)
}

func TestAForkIsTurnedTo(t *testing.T) {
	d := newDesk(t)
	d.says["fork"] = Said{Out: "t5  4 messages, 2 for the model\n"}
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	c.Line("/fork #4")
	c.did("roost fork t1 --at #4")
	c.when("turned", func(st state) bool { return st.Task == "t5" })
	c.shows("task t5, forked from t1")
}

func TestSettingsCountFromTheNextRunOn(t *testing.T) {
	d := newDesk(t)
	d.modes = []string{"ask", "code", "architect"}
	c := talking(t, d)
	c.Line("/mode architetc")
	c.shows("there is no mode architetc; architect is one")
	c.Line("/mode architect")
	c.Line("/limits turns=3 cost=0.50 idle=10m")
	c.shows("limits turns=3 cost=0.50 idle=10m0s")
	c.Line("/limits turns=-1")
	c.shows("want turns=20")
	c.Line("go")
	c.did("start go", `"mode":"architect"`, `"max_turns":3`, `"max_cost":"0.50"`, `"idle_timeout":"10m0s"`)
	d.replies("t1", "run1", "gone")
	c.idle()

	c.Line("/approve everything")
	c.shows("want /approve ask, read, edits or all")
	c.Line("/approve read")
	c.Line("/model m2")
	c.Line("/limits turns=0")
	c.Line("more")
	c.did("resume t1", `"approve":"read"`, `"model":"m2"`, `"max_turns":0`, `"text":"more"`)
	d.replies("t1", "run2", "done")
	c.idle()
	c.Line("plain") // they are the task's own now
	c.did("send t1", `"text":"plain"`)
}

func TestSettingsThatWereRefusedStay(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.Task, o.Again = "t1", api.NewRun{Settings: api.Settings{Model: "m9"}} })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy })
	d.mu.Lock()
	d.refuse = errNotNow
	d.mu.Unlock()
	c.Line("once")
	c.when("back", func(st state) bool { return slices.Equal(st.Back, []string{"once"}) })
	c.Line("/retry")
	c.did("resume t1", `"yes":true`, `"model":"m9"`)
}

type errText string

func (e errText) Error() string { return string(e) }

const errNotNow = errText("not now")

func TestHelp(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Line("/help")
	for _, command := range commands() {
		c.shows("/" + command.name)
	}
	c.Line("/help /rewind")
	c.shows("/rewind [REF] [--files]: take the histories back")
}

func TestQuit(t *testing.T) {
	c := talking(t, newDesk(t))
	c.Line("/quit")
	c.when("over", func(st state) bool { return st.Over })
}

// The documentation shows the same table of keys as `?`, /help and roost help keys.
func TestTheDocumentedKeys(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```text\n"+keysPage+"```\n") {
		t.Error("docs/chat.md does not hold keys.txt as it is")
	}
	for line := range strings.Lines(keysPage) {
		if len(line) > 80 {
			t.Errorf("a line does not fit 80 columns: %s", line)
		}
	}
}
