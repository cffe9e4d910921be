package running

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// questionReply is the outcome of asking a question on the terminal.
type questionReply struct {
	display.Reply
	question string
	err      error
}

// asking is the question of one task that is on the terminal now. Events are handled while
// it is open: an answer from another client removes it.
type asking struct {
	w      *Watcher
	id     string             // of the task
	depth  int                // of the task below the one that is followed
	now    string             // the question; "" = none
	opened api.QuestionOpened // the newest that was asked, and where
	d      *display.Display
	quit   context.CancelFunc
	out    chan questionReply
	wait   sync.WaitGroup
}

// ask puts a question to the user, if it is still open: a stream also holds questions that
// were answered long ago.
func (q *asking) ask(ctx context.Context, opened api.QuestionOpened, d *display.Display) {
	if !q.still(ctx, opened.Question) {
		return
	}
	q.end()
	ctx, q.quit = context.WithCancel(ctx)
	q.now, q.out = opened.Question, make(chan questionReply, 1)
	q.opened, q.d = opened, d
	out := q.out
	if q.w.own == nil {
		q.w.prompter.Forget() // what was typed before does not answer a question of another process
	}
	q.wait.Go(func() {
		r, err := q.w.prompter.On(d).Ask(ctx, opened)
		out <- questionReply{r, opened.Question, err}
	})
}

// pause takes the question off the terminal for another one, and asks it again after that if it is still open.
func (q *asking) pause(other func()) {
	opened, d := q.opened, q.d
	open := q.open()
	q.end()
	other()
	if open && q.w.stop.Ctx.Err() == nil {
		q.ask(q.w.stop.Ctx, opened, d)
	}
}

// askOpen asks a question that a run waits with, and whose event is before the first event that was shown: a run that
// continues with an open question does not open it again.
func (w *Watcher) askOpen(ctx context.Context, q *asking, run string) {
	if w.prompter == nil || q.open() {
		return
	}
	r, err := w.C.Run(ctx, run)
	if err != nil || r.State != "waiting" || !strings.HasPrefix(r.Question, q.id+".") {
		return
	}
	open, err := w.C.Questions(ctx, q.id)
	if err != nil {
		return // the next silence tries again
	}
	for _, one := range open {
		if one.ID == r.Question {
			q.ask(ctx, one.QuestionOpened, w.screen(shownEvent{task: q.id, depth: q.depth}))
		}
	}
}

// still reports whether a question is still open.
func (q *asking) still(ctx context.Context, question string) bool {
	open, err := q.w.C.Questions(ctx, q.id)
	if err != nil {
		return true // asking too much is better than not asking
	}
	for _, one := range open {
		if one.Question == question {
			return true
		}
	}
	return false
}

// reply is the channel of the answer; nil while no question is open.
func (q *asking) reply() <-chan questionReply { return q.out }

func (q *asking) open() bool { return q.now != "" }

// closed removes the question from the terminal after an answer came.
func (q *asking) closed(e shownEvent) {
	var c api.QuestionClosed
	if json.Unmarshal(e.Data, &c) != nil {
		return
	}
	mine := q.w.mine[c.Question]
	if q.now == c.Question {
		q.end()
		if !mine {
			q.w.prompter.Dismiss() // what is typed for it now answers no other
		}
		if !mine && !q.w.a.Flags.JSON {
			by := display.OneLine(c.By)
			if by == "" {
				by = "somebody"
			}
			q.w.d.Line(view.Dim, "· answered by "+by+" elsewhere")
		}
	}
}

// end removes the question from the terminal.
func (q *asking) end() {
	if q.quit != nil {
		q.quit()
		q.wait.Wait()
	}
	q.now, q.quit, q.out = "", nil, nil
}
