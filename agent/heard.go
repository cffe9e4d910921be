package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/mention"
)

// lookUp bounds how long all that one message mentions is looked up: a linter may take
// a minute, and whoever said it waits.
const lookUp = 90 * time.Second

var errLookUp = fmt.Errorf("looking up what was mentioned took more than %s", lookUp)

// heard is what the model is sent of a person's words: the words as a block, with
// what they mention looked up, and a block for each file, folder and slash command
// in them. It is looked up once, when the words become a turn, and stored with it:
// a restart sends the same. The person's own row keeps the words as they were typed.
//
// What was looked up has its secrets hidden like the output of a tool; the words
// are the person's to say.
func (d *draft) heard(ctx context.Context, words string) []json.RawMessage {
	a := d.agent
	if a.Host.Mentions == nil {
		return []json.RawMessage{rows.Text(marked(words))}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookUp, errLookUp)
	defer cancel()
	e := mention.Expand(ctx, marked(words), a.Host.Mentions)
	blocks := []json.RawMessage{rows.Text(e.Text + a.mask(e.Appended))}
	for _, b := range e.Blocks {
		blocks = append(append(blocks, rows.Text(a.mask(b.Text))), b.Images...)
		for _, f := range b.Files {
			d.Put(stale.Record(f))
		}
	}
	if e.Commands != "" {
		blocks = append(blocks, rows.Text(a.mask(e.Commands)))
	}
	for _, note := range e.Notes {
		a.notice(note)
	}
	d.goTo(e.Mode, "the slash command")
	return blocks
}
