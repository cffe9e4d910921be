package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/tool"
)

// A defect in a tool is that call's error, with what happened, where and after what
// time; the calls beside it run and the task goes on.
func TestPanicIsAnErrorResult(t *testing.T) {
	for name, broken := range map[string]func(*fake){
		"in its body": func(f *fake) {
			f.run = func(_ context.Context, _ tool.Output, what string) (tool.Result, error) {
				return tool.Result{Text: what[len(what)+1:]}, nil
			}
		},
		"in what it asks for": func(f *fake) {
			f.ask = func(a *tool.Ask) { a.Paths = []string{a.Paths[7]} }
		},
	} {
		for _, which := range []string{"look", "edit", "act"} {
			t.Run(which+" "+name, func(t *testing.T) {
				b := newBench(t, turn{calls: []call{use("c1", which, "a"), use("c2", "look", "b")}}, finish("done"))
				good := b.fake("look", tool.Read, tool.Again)
				if which == "look" {
					good.spec.Name, b.tools = "other", append(b.tools, good)
					b.model.turns[0].calls[1] = use("c2", "other", "b")
				}
				b.prepare()
				broken(b.tool(which))
				want(t, b.start(agent.Input{Text: "go"}), "completed", "")
				checkHistories(t, b.disk.state)
				if got := outcomes(b.disk.state); len(got) < 2 || got[0] != "c1 error" || got[1] != "c2 ok" {
					t.Errorf("outcomes %q", got)
				}
				text := result(t, b.disk.state, "c1")
				for _, part := range []string{which + " failed inside after 0.", " s, which is a defect", "_test.go:"} {
					if !strings.Contains(text, part) {
						t.Errorf("the result lacks %q: %s", part, text)
					}
				}
			})
		}
	}
}

// deaf is a reading tool whose body does not heed its context: it goes on until back is
// closed. It leaves the bench alone, since it may still run when the run is over.
type deaf struct {
	tool.Tool
	back chan struct{}
	runs func()
}

func (d deaf) Plan(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	p, err := d.Tool.Plan(ctx, env, input)
	return deafPlan{p, d}, err
}

type deafPlan struct {
	tool.Plan
	d deaf
}

func (p deafPlan) Run(_ context.Context, out tool.Output) (tool.Result, error) {
	p.d.runs()
	<-p.d.back
	_, err := out.Write([]byte("too late"))
	return tool.Result{Text: "too late"}, err
}

// A call that does not end is stopped and says after what time. One that only reads and
// does not even heed that is left behind.
func TestHangIsAnErrorResult(t *testing.T) {
	for name, which := range map[string]string{"a read": "look", "a read that hangs in the kernel": "deaf", "a write": "edit"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, turn{calls: []call{use("c1", which, "a")}}, finish("done"))
				back := make(chan struct{})
				if which == "deaf" {
					b.tools = append(b.tools, deaf{b.fake("deaf", tool.Read, tool.Again), back, func() {}})
					b.prepare()
				} else {
					b.tool(which).run = func(ctx context.Context, _ tool.Output, _ string) (tool.Result, error) {
						<-ctx.Done()
						return tool.Result{}, errors.New("interrupted system call")
					}
				}
				newReadBench := time.Now()
				want(t, b.start(agent.Input{Text: "go"}), "completed", "")
				if took := time.Since(newReadBench); took < 10*time.Minute || took > 11*time.Minute {
					t.Errorf("it took %s", took)
				}
				close(back)
				synctest.Wait()
				checkHistories(t, b.disk.state)
				text := result(t, b.disk.state, "c1")
				if !strings.Contains(text, which+" did not end within 10m0s") || strings.Contains(text, "too late") {
					t.Errorf("the result is %s", text)
				}
			})
		})
	}
}

// Stopping a run does not wait for a read that hangs.
func TestStopDuringAHangingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, turn{calls: []call{use("c1", "deaf", "a")}}, finish("done"))
		ctx, cancel := context.WithCancel(context.Background())
		back := make(chan struct{})
		b.tools = append(b.tools, deaf{b.fake("deaf", tool.Read, tool.Again), back, cancel})
		b.prepare()
		newReadBench := time.Now()
		out := b.startWith(ctx, agent.Input{Text: "go"})
		if took := time.Since(newReadBench); took > 5*time.Second || out.State != "cancelled" {
			t.Errorf("it ended as %q after %s", out.State, took)
		}
		close(back)
		synctest.Wait()
		checkHistories(t, b.disk.state)
	})
}
