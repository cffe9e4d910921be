package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/task"
)

// ahead is how many events are read ahead of what is shown: while a question stands on
// the terminal nothing is shown, and its answer may come from elsewhere.
const ahead = 64

// answers are the questions that were answered, as soon as that is heard, and the one
// that is asked now. The zero value is ready.
type answers struct {
	mu   sync.Mutex
	by   map[string]string // by question: whose answer it was
	now  string
	quit context.CancelCauseFunc
}

// answeredElsewhere is why a question is not asked any more.
type answeredElsewhere struct{ by string }

func (e *answeredElsewhere) Error() string {
	return "· answered by " + cmp.Or(display.OneLine(e.by), "somebody") + " elsewhere"
}

// hear notes an answer, and takes its question off the terminal.
func (a *answers) hear(e engine.Event) {
	if e.Type != "question.closed" {
		return
	}
	var c task.QuestionClosed
	if json.Unmarshal(e.Data, &c) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]string{}
	}
	a.by[c.Question] = c.By
	if a.quit != nil && a.now == c.Question {
		a.quit(&answeredElsewhere{c.By})
	}
}

// until is a context that ends, with an *answeredElsewhere, when a question is answered
// by somebody else. done must be called.
func (a *answers) until(ctx context.Context, question string) (asking context.Context, done func()) {
	ctx, quit := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.quit = question, quit
	if by, was := a.by[question]; was {
		quit(&answeredElsewhere{by})
	}
	return ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.now, a.quit = "", nil
		quit(nil)
	}
}
