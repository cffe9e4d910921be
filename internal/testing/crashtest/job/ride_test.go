package job

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/journal"
)

// pretend is a ride that no process takes part in.
func pretend(seed uint64) *Ride {
	return &Ride{
		Model: &Model{Job: Whole(), deepest: map[string]int{}}, Looks: map[string]crashtest.Look{},
		random: rand.New(rand.NewPCG(seed, 1)),
	}
}

// The kills are spread over the whole job, however many there are to be: each comes
// about as far as there is left for it. The same seed gives the same moments.
func TestMomentsAreSpreadOverTheJob(t *testing.T) {
	for _, kills := range []int{8, 50, 200} {
		var runs [2][]string
		for i := range runs {
			r := pretend(7)
			for left := kills; left > 0; left-- {
				m := r.moment(left)
				if m.never || m.requests < 0 || m.delay < 0 {
					t.Fatalf("%d kills: %+v", kills, m)
				}
				runs[i] = append(runs[i], fmt.Sprint(m))
				reached := 0
				if m.fail == "" {
					reached = m.requests
				} else if at := strings.Index(m.fail, ":"); at < 0 {
					t.Errorf("a failpoint without a count: %q", m.fail)
				}
				r.Model.deepest["main"] += reached
			}
			reached, all := r.Model.Progress()
			if reached < all/4 || reached > all*3/2 {
				t.Errorf("%d kills come to step %d of %d", kills, reached, all)
			}
			if m := r.moment(0); !m.never || m.fail != quotaPlace {
				t.Errorf("no kill is left: %+v", m)
			}
		}
		if d := cmp.Diff(runs[0], runs[1]); d != "" {
			t.Error(d)
		}
	}
}

func look(events ...string) crashtest.Look {
	var l crashtest.Look
	for i, e := range events {
		l.Commits = append(l.Commits, journal.Commit{Seq: uint64(i + 1), Events: []json.RawMessage{json.RawMessage(e)}})
	}
	return l
}

const (
	begunChild = `{"type":"subtask.started","child":"c"}`
	endedChild = `{"type":"subtask.ended","child":"c"}`
)

// A subtask may be resumed instead of the first task as long as somebody waits for it.
func TestAwaited(t *testing.T) {
	made := look(`{"type":"task.created","parent":"p"}`)
	made.API = []json.RawMessage{json.RawMessage(`{}`)}
	for _, c := range []struct {
		name   string
		parent crashtest.Look
		child  crashtest.Look
		want   []string
	}{
		{"none was started", look(), made, nil},
		{"it was started", look(begunChild), made, []string{"c"}},
		{"it was started and is not made", look(begunChild), look(), nil},
		{"it ended", look(begunChild, endedChild), made, nil},
	} {
		r := pretend(1)
		r.Main, r.Looks = "p", map[string]crashtest.Look{"p": c.parent, "c": c.child}
		if d := cmp.Diff(c.want, r.awaited()); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.name, d)
		}
	}
}

func TestOrigin(t *testing.T) {
	for event, want := range map[string][2]bool{
		`{"type":"task.created"}`:              {true, false},
		`{"type":"task.created","parent":"p"}`: {true, true},
		`{"type":"epoch.opened"}`:              {false, false},
	} {
		if made, sub := origin(look(event)); made != want[0] || sub != want[1] {
			t.Errorf("%s: made %t, a subtask %t", event, made, sub)
		}
	}
}

// What a round is started with follows from what the last one left.
func TestArguments(t *testing.T) {
	r := pretend(1)
	r.Bench = &crashtest.Bench{Workspace: "/w", Model: []string{"--model", "m"}}
	r.Flags = []string{"--flag"}
	begun := look()
	begun.API = []json.RawMessage{json.RawMessage(`{}`)}
	for _, c := range []struct {
		name string
		main string
		look crashtest.Look
		ask  []string
		want string
	}{
		{"nothing is there", "", look(), nil, "run --model m --flag --yes -C /w Follow the plan main."},
		{"its words are not there", "p", look(), nil, "resume p Follow the plan main. --yes -C /w --model m --flag"},
		{"it was cut", "p", begun, nil, "resume p"},
		{"it asks", "p", begun, []string{"c", "the far side"}, "resume c the far side"},
	} {
		r.Main, r.answer = c.main, c.ask
		r.Looks = map[string]crashtest.Look{c.main: c.look}
		if got := strings.Join(r.args(), " "); got != c.want {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
	}
	if r.Answers != 1 {
		t.Errorf("%d answers were counted", r.Answers)
	}
}

// A question is answered to the task that asks it, or to the first one, which knows of it.
func TestQuestions(t *testing.T) {
	asks := func(words ...string) crashtest.Look { return crashtest.Look{Asked: words} }
	to := map[string]bool{}
	for seed := range uint64(20) {
		r := pretend(seed)
		r.Main = "p"
		r.Looks = map[string]crashtest.Look{"p": asks(), "c": asks("Which side shall it be on?")}
		if err := r.question(); err != nil || len(r.answer) != 2 || r.answer[1] != "the far side" {
			t.Fatalf("got %v, %v, want no error and len(r.answer) = 2 and r.answer[1] = \"the far side\"",
				r.answer, err)
		}
		to[r.answer[0]] = true
	}
	if !to["p"] || !to["c"] {
		t.Errorf("answers went to %v", to)
	}
	for name, looks := range map[string]map[string]crashtest.Look{
		"nobody asks":      {"p": asks()},
		"two ask":          {"p": asks("Which colour?"), "c": asks("Which side?")},
		"another question": {"p": asks("Why?")},
	} {
		r := pretend(1)
		r.Main, r.Looks = "p", looks
		if err := r.question(); err == nil {
			t.Errorf("%s: it is answered with %v", name, r.answer)
		}
	}
}
