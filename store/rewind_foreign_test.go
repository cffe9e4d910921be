package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// asked is what the person says, as Roo shows it.
func asked(i int, words string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"user_feedback","text":%q}`, ts0+i, words)
}

// edited is a task of an editor with three turns, which Roost has continued by one more.
func edited(t testing.TB) (s *Store, dir string, ui, api []string) {
	t.Helper()
	storage, dir := rooStorage(t, "live-one")
	for i := 10; i < 40; i += 10 {
		ui = append(ui, asked(i, fmt.Sprint("do ", i)), uiRow(i+2, fmt.Sprint("done ", i)))
		api = append(api, apiRow(i+1, "user", fmt.Sprint("do ", i)), apiRow(i+2, "assistant", fmt.Sprint("done ", i)))
	}
	write(t, dir, roofmt.UIName, array(ui...))
	write(t, dir, roofmt.APIName, array(api...))
	s = open(t, t.TempDir(), storage)
	k := own(t, s, "live-one").Task
	ui, api = append(ui, asked(40, "ours")), append(api, apiRow(41, "user", "ours"))
	commit(t, k, task.UI, ui[6])
	commit(t, k, task.API, api[6])
	closeTask(t, k)
	return s, dir, ui, api
}

// What an editor did while Roost was away, when it took the task back: one step, read as
// it is taken in, which is undone and done again to the byte.
func TestForeignRewinds(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(ui, api []string) (string, string) // what the editor's files hold then
		gone      int                                     // messages
		finished  string                                  // the model's file, where it is not as the editor left it
		otherTool bool
	}{
		"sent again with other words": {do: func(ui, api []string) (string, string) {
			return with(ui[:2], asked(50, "rather this"), uiRow(52, "done so")), with(api[:2], apiRow(51, "user", "rather this"), apiRow(52, "assistant", "done so"))
		}, gone: 10},
		"typed again and not sent yet": {do: func(ui, api []string) (string, string) {
			return with(ui[:2], asked(50, "rather this")), array(api[:2]...)
		}, gone: 10},
		"died between its two writes": {do: func(ui, api []string) (string, string) {
			return array(ui[:2]...), array(api...)
		}, gone: 5, finished: "2"},
		"a reply that Roo leaves": {do: func(ui, api []string) (string, string) {
			return array(ui[:3]...), array(api[:4]...)
		}, gone: 7},
		"replies taken out by hand": {do: func(ui, api []string) (string, string) {
			return array(ui...), array(api[:3]...)
		}, gone: 4},
		"the rows of Roost alone": {do: func(ui, api []string) (string, string) {
			return array(ui[:6]...), array(api[:6]...)
		}, gone: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir, ui, api := edited(t)
			whole := bothFiles(t, dir)
			newUI, newAPI := c.do(ui, api)
			editor(t, dir, map[string]string{roofmt.UIName: newUI, roofmt.APIName: newAPI})
			if c.finished != "" {
				newAPI = array(api[:2]...)
			}
			v := view(t, s, "live-one")
			if len(v.Pending) == 0 || v.Pending[0].Rewound == nil || v.Pending[0].Lacking != c.gone {
				t.Fatalf("read: %+v", v.Pending)
			}
			o := own(t, s, "live-one")
			if len(o.Task.Intakes()) != len(v.Pending) || o.Task.Intakes()[0].Rewound == nil {
				t.Fatalf("got %+v, want len(o.Task.Intakes()) = len(v.Pending) and o.Task.Intakes()[0].Rewound != nil", o.Task.Intakes())
			}
			if got := rows(o.Task.State()); got != rows(v.State) {
				t.Errorf("taken in as\n%s\nand read before as\n%s", got, rows(v.State))
			}
			closeTask(t, o.Task)
			after := bothFiles(t, dir)
			if after != newUI+"\n"+newAPI {
				t.Errorf("the editor's files became\n%s", after)
			}
			for range 2 {
				if d := undo(t, s, "live-one", false); d.Kind != "rewind" || d.By == "" || bothFiles(t, dir) != whole {
					t.Fatalf("took back %+v: %s", d, bothFiles(t, dir))
				}
				if undo(t, s, "live-one", true); bothFiles(t, dir) != after {
					t.Fatalf("did again: %s", bothFiles(t, dir))
				}
			}
			o = own(t, s, "live-one")
			if len(o.Task.Intakes()) > 0 {
				t.Errorf("taken in twice: %+v", o.Task.Intakes())
			}
			closeTask(t, o.Task)
		})
	}
}

// What may be a window's memory, or says two things, moves no head.
func TestForeignWritesThatAreNoRewind(t *testing.T) {
	for name, do := range map[string]func(ui, api []string) (string, string){
		"our rows, and new ones": func(ui, api []string) (string, string) {
			return with(ui[:6], asked(50, "from memory")), with(api[:6], apiRow(51, "user", "from memory"))
		},
		"our row of one side": func(ui, api []string) (string, string) { return array(ui[:6]...), array(api...) },
		"our message of the model's side": func(ui, api []string) (string, string) {
			return array(ui...), array(api[:6]...)
		},
		"new rows over a history that is whole": func(ui, api []string) (string, string) {
			return with(ui[:2], asked(50, "new")), array(api...)
		},
		"a row changed too": func(ui, api []string) (string, string) {
			return array(ui[0], uiRow(12, "other words")), array(api[:2]...)
		},
		"a row in between": func(ui, api []string) (string, string) {
			return array(ui[0], uiRow(11, "new"), ui[1]), array(api[:2]...)
		},
		"a hole": func(ui, api []string) (string, string) {
			return array(ui[0], ui[1], ui[6]), array(api[0], api[1], api[6])
		},
		"the model's side goes further than it can": func(ui, api []string) (string, string) {
			return array(ui[:4]...), array(api[:1]...)
		},
		"nothing left": func(_, api []string) (string, string) { return array(asked(50, "new")), array(api[:2]...) },
		"the person's turn alone, as Roo takes it out when it resumes": func(ui, api []string) (string, string) {
			return array(ui...), array(api[:6]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir, ui, api := edited(t)
			whole, want := bothFiles(t, dir), rows(view(t, s, "live-one").State)
			newUI, newAPI := do(ui, api)
			editor(t, dir, map[string]string{roofmt.UIName: newUI, roofmt.APIName: newAPI})
			o := own(t, s, "live-one")
			if got := rows(o.Task.State()); got != want || len(o.Task.Intakes()) == 0 || o.Task.Intakes()[0].Refused == "" {
				t.Errorf("got %+v\n%s, want got = %v and len(o.Task.Intakes()) != 0 and o.Task.Intakes()[0].Refused != \"\"",
					o.Task.Intakes(), got, want)
			}
			closeTask(t, o.Task)
			if got := bothFiles(t, dir); got != whole {
				t.Errorf("not projected again: %s", got)
			}
		})
	}
}

// rooLeaves is what Roo leaves of the model's side when a person deletes a row: messages
// by their times.
func rooLeaves(ui, api []task.Message, row int) (left []int) {
	ts := ui[row].TS()
	exact, older, cutoff := false, false, ts
	for i := range api {
		exact, older = exact || api[i].TS() == ts, older || api[i].TS() < ts
	}
	for i := range api {
		if !exact && older && api[i].Kind() == "user" && api[i].TS() >= ts {
			cutoff = api[i].TS()
			break
		}
	}
	for i := range api {
		if api[i].TS() < cutoff {
			left = append(left, i)
		}
	}
	return left
}

// Whatever an editor writes, nothing is lost: each message that ever was there is in the
// head or on a branch, and what was taken in as a rewind is undone to the byte.
func TestNothingIsLostByForeignRewinds(t *testing.T) {
	for row := 1; row < 7; row++ {
		for _, half := range []bool{false, true} { // it died between its two writes
			for more := range 3 { // it went on: not, with a row, with a row that was sent
				t.Run(fmt.Sprint(row, half, more), func(t *testing.T) {
					t.Parallel()
					foreignRewind(t, row, half, more)
				})
			}
		}
	}
}

func foreignRewind(t *testing.T, row int, half bool, more int) {
	s, dir, ui, api := edited(t)
	v := view(t, s, "live-one")
	newUI, newAPI := slices.Clone(ui[:row]), []string{}
	for _, i := range rooLeaves(valuesOf(v.State.UI()), valuesOf(v.State.API()), row) {
		newAPI = append(newAPI, api[i])
	}
	if half {
		newAPI = slices.Clone(api)
	}
	if more > 0 {
		newUI = append(newUI, asked(60, "more"))
	}
	if more > 1 {
		newAPI = append(newAPI, apiRow(61, "user", "more"))
	}
	whole := bothFiles(t, dir)
	write(t, dir, roofmt.UIName, array(newUI...))
	write(t, dir, roofmt.APIName, array(newAPI...))
	o := own(t, s, "live-one")
	state := o.Task.State()
	took := len(o.Task.Intakes()) > 0 && o.Task.Intakes()[0].Rewound != nil
	if want := !half && (row < 6 || more == 0) || half && more == 0 && row < 6; took != want {
		t.Errorf("taken in as a rewind: %v, want %v: %+v", took, want, o.Task.Intakes())
	}
	seen := rows(state)
	for _, b := range state.Branches {
		for _, h := range []task.History{task.UI, task.API} {
			for _, raw := range fixture.Must[[]json.RawMessage](t)(state.Raws(state.History(b.Leaf, h))) {
				seen += string(raw) + "\n"
			}
		}
	}
	for _, want := range slices.Concat(ui, api) {
		if !strings.Contains(seen, want+"\n") {
			t.Errorf("lost %s; the editor wrote %s\n%s", want, newUI, newAPI)
		}
	}
	closeTask(t, o.Task)
	if !took {
		return
	}
	after := bothFiles(t, dir)
	undo(t, s, "live-one", false)
	if got := bothFiles(t, dir); got != whole {
		t.Errorf("took back to %s", got)
	}
	undo(t, s, "live-one", true)
	if got := bothFiles(t, dir); got != after {
		t.Errorf("did again %s, not %s", got, after)
	}
	if r := fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, nil, false)); len(r.Damaged) > 0 {
		t.Errorf("doctor: %+v", r.Damaged)
	}
}

func valuesOf(list []*task.Message) (out []task.Message) {
	for _, m := range list {
		out = append(out, *m)
	}
	return out
}

// bothFiles are the two histories as Roo's files hold them.
func bothFiles(t testing.TB, dir string) string {
	t.Helper()
	return read(t, dir, roofmt.UIName) + "\n" + read(t, dir, roofmt.APIName)
}

// An editor that took a task back while Roost was away did one step: it is read, taken
// in, and undone.
func TestARewindByAnotherProgramIsOneStep(t *testing.T) {
	s, dir, want := continued(t)
	whole := bothFiles(t, dir)
	editor(t, dir, map[string]string{roofmt.UIName: array(fourRows[:2]...), roofmt.APIName: array(threeAPI[:2]...)})
	v := view(t, s, "live-one")
	if len(v.Pending) != 1 || v.Pending[0].Rewound == nil || len(v.State.UI()) != 2 || len(v.State.API()) != 2 {
		t.Fatalf("read: %+v, %s", v.Pending, rows(v.State))
	}
	o := own(t, s, "live-one")
	if len(o.Task.Intakes()) != 1 || o.Task.Intakes()[0].Rewound == nil || o.Task.Intakes()[0].Lacking != 3 {
		t.Fatalf("got %+v, want len(o.Task.Intakes()) = 1 and o.Task.Intakes()[0].Rewound != nil and o.Task.Intakes()[0].Lacking = 3",
			o.Task.Intakes())
	}
	closeTask(t, o.Task)
	if got := read(t, dir, roofmt.UIName); got != array(fourRows[:2]...) {
		t.Errorf("the editor's bytes were respelled: %s", got)
	}
	if d := undo(t, s, "live-one", false); d.Kind != "rewind" || d.By == "" || d.Gone.UI != 2 {
		t.Errorf("took back %+v", d)
	}
	if got := rows(view(t, s, "live-one").State); got != want || bothFiles(t, dir) != whole {
		t.Errorf("it is %s", got)
	}
}
