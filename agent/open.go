package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/resume"
	"github.com/roost-dev/roost/task"
)

// open begins a run: on a task without messages it puts the person's prompt into
// both histories, on any other it mends what an interrupted run left behind. It
// is durable before open returns: that is the acknowledgement of the input.
func (a *Agent) open(ctx context.Context, in *Input) error {
	s := a.state()
	var events []task.Event
	if s.Run != nil && s.Run.Outcome == "" {
		events = append(events, task.RunEnded{Run: s.Run.ID, Outcome: "interrupted", Reason: "the program ended"})
	}
	events = append(events, task.RunStarted{Run: a.RunID, Settings: a.Settings, Head: a.Head})
	if len(s.UI()) == 0 && len(s.API()) == 0 {
		return a.begin(ctx, in, events)
	}
	return a.restart(ctx, in, events)
}

// begin starts a new conversation.
func (a *Agent) begin(ctx context.Context, in *Input, events []task.Event) error {
	ts := a.stamp()
	images := in.Images
	if images == nil {
		images = []string{}
	}
	events = append(events, a.add(task.UI, 0, sayRow(ts, "text", in.Text, images)))
	a.fresh = true
	blocks := append([]task.Piece{userWords(in.Text)}, imagePieces(in.Images)...)
	events = append(events, a.userTurn(1, nil, blocks))
	*in = Input{}
	if err := a.commit(ctx, events...); err != nil {
		return err
	}
	return a.save(ctx)
}

// restart mends the visible histories and asks how to go on. Roo's rules decide
// which rows go and which question is asked; nothing is removed from the log.
func (a *Agent) restart(ctx context.Context, in *Input, events []task.Event) error {
	s := a.state()
	plan := resume.Make(bytesOf(s.RawUI()), bytesOf(s.RawAPI()), resume.Reply{}, a.Now(), a.Now(), resume.Options{ClosePartial: true})
	var gone []uint64
	for _, i := range plan.Hidden {
		gone = append(gone, s.UI()[i].ID)
	}
	if len(gone) > 0 {
		events = append(events, task.MessageHidden{Messages: gone, Reason: "resume"})
	}
	for _, change := range plan.Changed {
		events = append(events, task.MessageChanged{Message: s.UI()[change.Index].ID, Body: task.Body{Raw: change.Row}})
	}
	a.endLeftovers(ctx)
	offset := uint64(0)
	if !a.answersQuestion(in) {
		events = append(events, a.add(task.UI, offset, plainAskRow(a.stamp(), plan.Ask, nil)))
		offset++
		if in.Given() && (in.Text != "" || len(in.Images) > 0) {
			events = append(events, a.add(task.UI, offset, sayRow(a.stamp(), "user_feedback", in.Text, nonNil(in.Images))))
			offset++
		}
	}
	a.fresh = true
	// Words for a history that already ends in a user turn join it, as Roo does;
	// for one that ends in the model's reply they are used when its calls are closed.
	api := s.API()
	if len(api) == 0 {
		words := in.Text
		if words == "" {
			words = firstWords(s)
		}
		events = append(events, a.userTurn(offset, nil, []task.Piece{userWords(words)}))
		*in = Input{}
	} else if last := api[len(api)-1]; last.Kind() == "user" && in.Given() {
		if in.Text != "" || len(in.Images) > 0 {
			blocks := append([]task.Piece{userWords(in.Text)}, imagePieces(in.Images)...)
			events = append(events, a.userTurn(offset, nil, blocks))
		}
		*in = Input{}
	}
	if err := a.commit(ctx, events...); err != nil {
		return err
	}
	return a.save(ctx)
}

// answersQuestion reports whether the input is meant for an open question rather
// than for the task as a whole.
func (a *Agent) answersQuestion(in *Input) bool {
	return in.Given() && len(a.state().Questions) > 0
}

// firstWords stands in for a history that the model's side of is lost.
func firstWords(s *task.State) string {
	for _, m := range s.UI() {
		if text := strings.TrimSpace(m.Text()); text != "" {
			return text
		}
	}
	return fmt.Sprintf("Continue task %s.", s.ID)
}

func userWords(text string) task.Piece {
	return task.Piece{Literal: string(textBlock("<user_message>\n" + text + "\n</user_message>"))}
}

// imagePieces turns data URLs into image blocks, split at the first comma as Roo does.
func imagePieces(images []string) []task.Piece {
	var out []task.Piece
	for _, url := range images {
		head, data, ok := strings.Cut(url, ",")
		if !ok {
			continue
		}
		media := strings.TrimSuffix(strings.TrimPrefix(head, "data:"), ";base64")
		var src, o esjson.Object
		src.String("type", "base64")
		src.String("media_type", media)
		src.String("data", data)
		o.String("type", "image")
		o.Raw("source", src.Bytes())
		out = append(out, task.Piece{Literal: string(o.Bytes())})
	}
	return out
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func bytesOf[T ~[]byte](list []T) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = b
	}
	return out
}
