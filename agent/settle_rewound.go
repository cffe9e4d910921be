package agent

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// rewound settles a call of a reply that stays, whose outcome a person took back: it is
// not run again, also where its change is not there any more. The person took that back
// as well, and said so; what they want now comes with their next words. What changed
// since is none of the call's: it had ended, and what it did was recorded.
func (b *batch) rewound(ctx context.Context, c *task.Call, t tool.Tool) error {
	const took = "The user took the history back to before this call had ended. "
	v := verdict{outcome: "unknown", isError: true, text: took + "What it did may stand, or may have been taken back as well. " +
		"It was not run again. Check the state of things before you decide to repeat it."}
	if looker, is := t.(tool.Inspector); is && t.Spec().Replay == tool.Inspect {
		found, err := bounded(ctx, c.Name, true, func(ctx context.Context) (tool.Finding, error) {
			return looker.Inspect(ctx, b.env(""), c.Input(), c.Before)
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx) // nothing was decided: the next run looks again
		case err == nil && found == tool.Done:
			v = verdict{outcome: "ok", text: took + "The file holds its change; it was not made again.", after: b.wrote(ctx, c)}
		case err == nil && found == tool.NotDone:
			v.text = took + "Its change was taken back as well: the file is as it was before. It was not made again."
		default:
			v.text = took + "The file is something else by now, and the change was not made again. Read the file before you go on."
		}
	}
	b.agent.notice(fmt.Sprintf("the outcome of %s was taken back: it is not run again", c.Name))
	return b.finish(ctx, c, v)
}
