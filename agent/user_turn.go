package agent

import (
	"context"
	"strconv"

	"github.com/roost-dev/roost/task"
)

// userTurn builds the event for the next user message: results of calls first,
// then what else there is to say, then the environment.
func (a *Agent) userTurn(offset uint64, results []string, blocks []task.Piece) task.MessageAdded {
	var pieces []task.Piece
	sep := `{"role":"user","content":[`
	add := func(p task.Piece) {
		if p.Literal != "" {
			pieces = append(pieces, task.Piece{Literal: sep + p.Literal})
		} else {
			pieces = append(pieces, task.Piece{Literal: sep}, p)
		}
		sep = ","
	}
	for _, call := range results {
		add(task.Piece{Result: call})
	}
	for _, b := range blocks {
		add(b)
	}
	add(task.Piece{Literal: string(textBlock(a.environment()))})
	pieces = append(pieces, task.Piece{Literal: `],"ts":` + strconv.FormatInt(a.stamp(), 10) + `}`})
	return task.MessageAdded{
		History: task.API, Message: a.state().NextMessage() + offset,
		Body: task.Body{Compose: mergeLiterals(pieces)},
	}
}

// commitUserTurn commits a user turn. It becomes durable with the request that
// sends it.
func (a *Agent) commitUserTurn(ctx context.Context, results []string, blocks []task.Piece) error {
	return a.commit(ctx, a.userTurn(0, results, blocks))
}

// addUserTurn uses the person's input up, as the model's next user turn.
func (a *Agent) addUserTurn(ctx context.Context, results []string, in *Input) error {
	text := in.Text
	if text == "" {
		text = "Go on."
	}
	blocks := append([]task.Piece{userWords(text)}, imagePieces(in.Images)...)
	*in = Input{}
	return a.commitUserTurn(ctx, results, blocks)
}

func mergeLiterals(pieces []task.Piece) []task.Piece {
	var out []task.Piece
	for _, p := range pieces {
		if n := len(out); n > 0 && p.Literal != "" && out[n-1].Literal != "" {
			out[n-1].Literal += p.Literal
			continue
		}
		out = append(out, p)
	}
	return out
}
