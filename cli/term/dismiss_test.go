package term

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/api"
)

// A question that somebody else answered is taken off while the person types: what they
// finish then answers nothing, however it meets the next question.
func TestWhatWasTypedForAQuestionThatIsGoneAnswersNoOther(t *testing.T) {
	t.Parallel()
	first := api.QuestionOpened{Question: "q1", Kind: "approval", Text: "delete it?"}
	second := api.QuestionOpened{Question: "q2", Kind: "approval", Text: "delete the other one?"}
	for name, c := range map[string]struct {
		early, late string // lines between the two questions, and behind the second one
		after       time.Duration
		dropped     bool
	}{
		"typed between them":        {early: "y\n", late: "n x\n", after: 2 * time.Second},
		"several lines":             {early: "y\ny\nq\n", late: "n x\n", after: 2 * time.Second},
		"a moment after the second": {late: "y\nn x\n", after: 300 * time.Millisecond, dropped: true},
		"read and then answered":    {late: "n x\n", after: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, keys := io.Pipe()
				defer keys.Close()
				var screen strings.Builder
				p := NewPrompter(New(&screen, Options{Width: 80}), in)
				ctx, elsewhere := context.WithCancel(t.Context())
				go func() {
					synctest.Wait()
					elsewhere()
				}()
				if r, err := p.Ask(ctx, first); err == nil {
					t.Fatalf("the first question was answered: %+v", r)
				}
				p.Dismiss()
				go func() {
					_, _ = io.WriteString(keys, c.early)
					time.Sleep(time.Second)
					// By now the second one stands there.
					time.Sleep(c.after)
					_, _ = io.WriteString(keys, c.late)
				}()
				synctest.Wait()
				time.Sleep(time.Second)
				r, err := p.Ask(t.Context(), second)
				if err != nil || r.Approve == nil || *r.Approve {
					t.Fatalf("it was answered %+v, %v", r, err)
				}
				if told := strings.Contains(screen.String(), "typed for the earlier question"); told != c.dropped {
					t.Errorf("told of a dropped line: %v, want %v:\n%s", told, c.dropped, screen.String())
				}
				// And from then on everything counts at once.
				go func() { _, _ = io.WriteString(keys, "y\n") }()
				if r, err := p.Ask(t.Context(), second); err != nil || r.Approve == nil || !*r.Approve {
					t.Errorf("the next answer: %+v, %v", r, err)
				}
				_ = keys.Close()
				synctest.Wait()
			})
		})
	}
}
