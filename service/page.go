package service

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/view/markup"
)

// Bounds of what a page shows: of one text, and of all messages together, in bytes of HTML. One message may have more.
const (
	textBytes = 48 << 10
	pageBytes = 512 << 10
)

// promptsMost bounds the prompts that are listed.
const promptsMost = 200

// View is a task that was read, for everything that is shown of it.
type View struct {
	of   *Service
	view *store.View
}

// Read reads a task for f, and returns what f makes of it.
func Read[T any](ctx context.Context, s *Service, id string, f func(View) (T, error)) (doc T, err error) {
	return read(ctx, s, id, func(v *store.View) (T, error) { return f(View{s, v}) })
}

// OpenTask is a task that was read once for everything that a page shows of it.
type OpenTask struct {
	View
	row    api.Summary
	Copies []string // folders of copies of the task
	Newest string   // the cursor of its newest event, from before it was read; "0" = none
}

// Open reads a task. The caller closes it.
func (s *Service) Open(ctx context.Context, id string) (*OpenTask, error) {
	t, copies, err := s.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	at, known, err := t.Newest(ctx) // before the task is read, so that a follower from this cursor misses no event
	if err != nil {
		return nil, err
	}
	o := &OpenTask{View: View{of: s}, Copies: copies, Newest: "0"}
	if known {
		o.Newest = at.String()
	}
	if o.view, err = s.store.Read(ctx, t.ref); err != nil {
		return nil, err
	}
	if o.row, err = s.documentOf(ctx, o.view); err != nil {
		return nil, errors.Join(err, o.view.Close())
	}
	return o, nil
}

// Close closes the task.
func (t *OpenTask) Close() error { return t.view.Close() }

// Document is Task.Document of the task.
func (t *OpenTask) Document() api.Summary { return t.row }

// Branches returns the branches of the task.
func (t View) Branches() api.BranchTree { return history.Branches(t.view) }

// FileStates is Service.KnownFiles of the task, in its own workspace and without the changes of each file: a page asks for
// it often.
func (t *OpenTask) FileStates(ctx context.Context) (api.KnownFiles, error) {
	records := report.Records(t.view)
	w, why := t.of.openWorkspace(t.view, "")
	if len(records) > 0 && w == nil {
		return api.KnownFiles{}, noWorkspace(t.view.Ref.ID, why)
	}
	items, err := report.FileStates(ctx, w, records)
	return api.KnownFiles{Items: items, Task: t.view.Ref.ID}, err
}

// Todos returns the newest todo list of the task, if its newest messages hold one.
func (t View) Todos(ctx context.Context) []usage.Todo { return todosOf(ctx, t.view) }

// Fragments returns a window of a history as HTML. The options choose the history: the user's, the model's, or the
// messages of the next request.
func (t View) Fragments(ctx context.Context, o LinesOptions, span Span) (api.Fragments, error) {
	v := t.view
	p, err := partOf(v, o)
	out := api.Fragments{Task: v.Ref.ID, History: string(p.history), Items: []api.Fragment{}, Notes: []string{}}
	if err != nil {
		return out, err
	}
	out.Notes, out.StandIn, out.Total = append(out.Notes, p.notes...), p.why, p.size()
	from, to, forward := span.bounds(out.Total)
	zone := t.of.opt.Now().Location()
	name := url.PathEscape(v.Ref.Source + ":" + v.Ref.ID)
	pictures := "/v1/tasks/" + name + "/messages/"
	which := ""
	switch {
	case o.Effective:
		which = "&view=effective"
	case o.API:
		which = "&view=api"
	}
	var ts int64 // of the message that is rendered; another message may get its number
	set := markup.New(markup.Options{
		Clean: redact.Marked,
		Fold:  true,
		Most:  textBytes,
		Zone:  zone,
		Picture: func(number, picture int) string {
			return pictures + strconv.Itoa(number) + "/images/" + strconv.Itoa(picture) + "?ts=" + strconv.FormatInt(ts, 10) + which
		},
		Checkpoint: func(number int) string {
			return "/tasks/" + strings.TrimPrefix(name, url.PathEscape(store.OwnSource+":")) + "/changes?from=c" + strconv.Itoa(number)
		},
	})
	items := export.NewItems(v, o)
	low, high, size := from, to, 0 // low and high: what is not read yet is between them
	for low < high && ctx.Err() == nil && size < pageBytes {
		batch, read := p.batch(v, low, high, forward, &out.Notes)
		made := []api.Fragment{}
		for i, list := range items.Of(batch) {
			number := batch[i].Number
			ts = list[0].TS
			one := set.Element(list, out.History, p.newDay(number-1, list[0].TS, zone))
			made = append(made, api.Fragment{Number: number, HTML: one})
			size += len(one)
		}
		if forward {
			low, out.Items = low+read, append(out.Items, made...)
		} else {
			high, out.Items = high-read, append(made, out.Items...)
		}
	}
	if forward {
		to = low
	} else {
		from = high
	}
	out.Before, out.After = edges(from, to, out.Total)
	return out, ctx.Err()
}

// batch reads messages between two indexes, as many as are rendered together: the first ones of them, or the last ones. It
// returns them in their order. read counts the unreadable ones, too.
func (p part) batch(v *store.View, from, to int, first bool, notes *[]string) (batch []export.Element, read int) {
	held := 0
	for read < min(export.Together, to-from) && held < linesBytes {
		i := from + read
		if !first {
			i = to - 1 - read
		}
		read++
		raw, m, err := p.read(v, i)
		if err != nil {
			*notes = append(*notes, unread(i, err))
			continue
		}
		held += len(raw)
		batch = append(batch, export.Element{Number: i + 1, Raw: raw, Message: m})
	}
	if !first {
		slices.Reverse(batch)
	}
	return batch, read
}

// newDay reports whether the message before the one at a place is of another day.
func (p part) newDay(i int, ts int64, zone *time.Location) bool {
	for i--; i >= 0 && !p.isMade; i-- {
		if before := p.list[i].TS(); before != 0 {
			day := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(time.DateOnly) }
			return day(before) != day(ts)
		}
	}
	return i < 0 && !p.isMade
}

// Alignment returns a window of the messages of the next request, each beside the messages of the conversation that
// it comes from.
func (t View) Alignment(span Span) (api.Alignment, error) {
	out := api.Alignment{Task: t.view.Ref.ID, Items: []api.AlignedMessage{}, Notes: []string{}}
	all, err := report.Align(t.view)
	if err != nil {
		return out, err
	}
	out.Total = len(all)
	out.Items, out.Before, out.After = window(all, span)
	return out, nil
}

// Prompts lists the messages that a person wrote in a task, each cut to its beginning.
func (s *Service) Prompts(ctx context.Context, id string) (api.Prompts, error) {
	return Read(ctx, s, id, func(t View) (api.Prompts, error) { return t.Prompts(ctx) })
}

// Prompts is Service.Prompts of the task.
func (t View) Prompts(ctx context.Context) (api.Prompts, error) {
	out := api.Prompts{Task: t.view.Ref.ID, Items: []api.Prompt{}}
	numbers, texts, total := export.Prompts(ctx, t.view, promptsMost)
	for i, text := range texts {
		out.Items = append(out.Items, api.Prompt{Number: numbers[i], Text: strings.ToValidUTF8(text, "\ufffd")})
	}
	out.Total = total
	return out, ctx.Err()
}

// Picture returns a picture of a message: its media type, which is detected from its bytes, and the bytes. number is
// the message's, from 1; n counts the pictures of the message and of its results, from 0.
func (s *Service) Picture(ctx context.Context, id string, o LinesOptions, number, n int) (media string, raw []byte, err error) {
	raw, err = read(ctx, s, id, func(v *store.View) ([]byte, error) {
		p, err := partOf(v, o)
		if err != nil {
			return nil, err
		}
		if number < 1 || number > p.size() {
			return nil, noPicture("the task has no message " + strconv.Itoa(number))
		}
		one, m, err := p.read(v, number-1)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, items := range export.NewItems(v, o).Of([]export.Element{{Number: number, Raw: one, Message: m}}) {
			all = markup.Data(items[0])
		}
		if n < 0 || n >= len(all) {
			return nil, noPicture("message " + strconv.Itoa(number) + " has " + api.Plural(len(all), "picture"))
		}
		kind, bytes, err := markup.Picture(all[n])
		if err != nil {
			return nil, noPicture(err.Error())
		}
		media = kind
		return bytes, nil
	})
	return media, raw, err
}

func noPicture(why string) error {
	return problem(http.StatusNotFound, "picture_not_found", "There is no such picture", why)
}
