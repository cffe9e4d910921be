// Package export writes tasks to other forms: Markdown as Roo writes it, one
// self-contained HTML page, JSON, a folder that Roo can open, and a portable
// archive with checksums.
//
// It changes nothing of a task, and streams every form: it reads a history some messages at a time. It leaves out what
// is unreadable, names it in the Report, and writes the rest. The forms for reading (Markdown, HTML, JSON) mask secrets
// when the options have a redactor; the folder and the archive are exact.
//
// Everything that a model, a tool or another program wrote is untrusted. A page shows it as text: no markup of it
// survives, the page loads nothing, and its policy forbids scripts.
package export

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// Report is what an export left out and what it masked.
type Report struct {
	Masked  int          // secrets; each occurrence counts
	Unread  []api.Unread // messages that could not be read
	Skipped []string
}

// Options are how a task is written for readers. The zero value masks nothing.
type Options struct {
	Mask *redact.Redactor // nil masks nothing
}

// elements reads a history in order. It notes unreadable messages in the report and continues behind them. It ends
// early when ctx ends; the caller returns that error.
func elements(ctx context.Context, v *store.View, name string, list []*task.Message, from int, r *Report) iter.Seq[Element] {
	return func(yield func(Element) bool) {
		n := from
		for raw, err := range fold.Raws(ctx, v.State, list) {
			if ctx.Err() != nil {
				return
			}
			if n++; err != nil {
				r.Unread = append(r.Unread, api.Unread{History: name, Number: n, Problem: err.Error()})
			} else if !yield(Element{Number: n, Raw: raw, Message: list[n-from-1]}) {
				return
			}
		}
	}
}

// trouble adds to an error what was being made.
func trouble(v *store.View, form string, errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("export task %s as %s: %w", v.Ref.ID, form, err)
	}
	return nil
}
