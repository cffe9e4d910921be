package agent

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/shrink"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// A provider that refuses a request would refuse it for ever: the history behind it does not change. So the refused
// part is left out of what is sent; what is stored stays. Each repair makes the request smaller, and a turn has
// repairLimit tries, so that it ends.
//
// A part that the provider names is left out at once, and the journal records that with the failure. A guess is tried
// first: it is recorded with the reply that proves it. When it does not help it is dropped, and the refusal stays.

// repairLimit is how often the request of one turn is changed.
const repairLimit = 12

// repair records the changes to one turn's request.
type repair struct {
	tries int
	cause error // the refusal that a guess was tried for

	// reasoningTo is the server that gets the plain reasoning of earlier replies from now on.
	reasoningTo string
}

// repairRequest changes what is sent so that the refused request may go through. d is what to commit with the failure,
// did describes the change for the person. It returns false when nothing can be done.
func (a *Agent) repairRequest(ctx context.Context, m *repair, refused *llm.Error) (d *draft, did string, ok bool) {
	if m.tries++; m.tries > repairLimit {
		return nil, "", false
	}
	d = a.draft()
	switch refused.Kind {
	case llm.Invalid:
		if m.reasoningTo = a.wantsReasoning(refused); m.reasoningTo != "" {
			return d, "asking again with the reasoning of earlier replies", true
		}
		if a.dropThinking(refused) {
			return d, "asking again without the reasoning of earlier replies", true
		}
		if len(a.sending.trial) > 0 {
			return nil, "", false // the guess did not help
		}
		if w := a.namedBlock(refused); w != nil {
			d.Put(*w)
			return d, "left out of what is sent: " + w.What, true
		}
		if a.sending.trial = a.guessBlocks(refused); len(a.sending.trial) == 0 {
			return nil, "", false
		}
		m.cause = refused
		what := api.Each(a.sending.trial, func(w task.MessageWithheld) string { return w.What })
		return d, "trying without " + strings.Join(what, ", "), true
	case llm.ContextOverflow:
		return a.shorten(ctx, d, refused)
	}
	return nil, "", false
}

// wantsReasoning names the server when it requires reasoning_content of earlier replies and was sent none.
func (a *Agent) wantsReasoning(refused *llm.Error) string {
	takesDetails := contextwindow.ForModel(a.Model.Provider.Name(), a.Task.Settings.Model).KeepDetails
	sent := a.windowOptions().KeepReasoningContent
	if a.sending.unthinking || sent || !takesDetails || !strings.Contains(refused.Message, "reasoning_content") {
		return ""
	}
	return a.serverName()
}

// dropThinking leaves the history's reasoning out when the provider refuses it. Signed reasoning is bound to the
// model, and for some models to the account, that it came from; the history does not record which model or account
// that was, and an adopted one never does. So it is sent, and left out when the provider refuses it: dropping it
// whenever it could come from elsewhere would cost the model its own.
func (a *Agent) dropThinking(refused *llm.Error) bool {
	words := strings.ToLower(refused.Message)
	setting := strings.Contains(words, "thinking.type") || strings.Contains(words, "budget_tokens")
	about := containsAny(words, "thinking", "encrypted content", "encrypted_content",
		"thought signature", "thought_signature", "reasoning_details")
	if a.sending.unthinking || setting || !about {
		return false
	}
	a.sending.unthinking, a.sending.window = true, window{}
	return true
}

// namedBlock returns the part of the history that a refusal names, nil when it names none that can be left out.
func (a *Agent) namedBlock(refused *llm.Error) *task.MessageWithheld {
	l, is := a.Model.Provider.(llm.Locator)
	if !is {
		return nil
	}
	message, block, ok := l.Locate(refused.Message)
	if !ok {
		return nil
	}
	trace := contextwindow.Trace(a.sendableMessages(), a.windowOptions())
	if message >= len(trace) || block >= len(trace[message]) {
		return nil
	}
	pictures := aboutImages(refused)
	if block < 0 {
		// The refusal is about a whole message: only its images are worth a sure guess.
		for _, o := range trace[message] {
			if o.Message >= 0 && pictures {
				if w := a.withhold(o, true, refused.Message); w != nil {
					return w
				}
			}
		}
		return nil
	}
	o := trace[message][block]
	if o.Message < 0 {
		return nil
	}
	return cmp.Or(a.withhold(o, true, refused.Message), a.withhold(o, false, refused.Message)) // a result keeps its words
}

// unrelatedRefusal matches refusals that no change of the history can help.
var unrelatedRefusal = lazyregexp.New(`(?i)credit|billing|quota|payment|api.?key|max_tokens|max_output|temperature` +
	`|model[^.]*(not found|not exist|not support.*endpoint|deprecated|unknown)|unknown model|unsupported parameter`)

// guessBlocks guesses what may be wrong with a request when the provider does not name it: images when it mentions
// images, else what came since the last request that it accepted.
func (a *Agent) guessBlocks(refused *llm.Error) []task.MessageWithheld {
	if s := refused.Status; s != 400 && s != 413 && s != 422 || unrelatedRefusal().MatchString(refused.Message) {
		return nil
	}
	api := a.state().API()
	last := len(api) // messages from here on were never accepted
	for last > 0 && api[last-1].Kind() != "assistant" {
		last--
	}
	pictures := aboutImages(refused)
	found := a.suspectBlocks(last, pictures, refused.Message)
	if len(found) == 0 && pictures {
		found = a.suspectBlocks(0, true, refused.Message)
	}
	return found
}

// suspectBlocks returns images, or results of tools and images, from a message on.
func (a *Agent) suspectBlocks(from int, pictures bool, reason string) []task.MessageWithheld {
	var found []task.MessageWithheld
	for i, m := range a.state().API() {
		if i < from || m.Kind() != "user" {
			continue
		}
		for n, block := range slices.Collect(esjson.Array(esjson.Member(m.Raw(), "content"))) {
			typ, _ := esjson.GetString(block, "type")
			if typ != "image" && typ != "tool_result" || pictures && !hasImage(block) {
				continue
			}
			if w := a.withhold(contextwindow.Origin{Message: i, Block: n}, pictures, reason); w != nil {
				found = append(found, *w)
			}
		}
	}
	return found
}

func aboutImages(refused *llm.Error) bool {
	words := strings.ToLower(refused.Message)
	return containsAny(words, "image", "inline_data", "inlinedata", "vision")
}

func containsAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(s, word) })
}

// minWithheld is the least size of a block that is worth leaving out, in bytes.
const minWithheld = 4 << 10

// shorten makes a request shorter that the provider found too long. When one result or call is more than half of
// it, that block is left out: hiding everything before it would cost the task its memory and not help.
func (a *Agent) shorten(ctx context.Context, d *draft, refused *llm.Error) (*draft, string, bool) {
	at, size, total := shrink.Largest(a.state(), a.sendableMessages())
	if size*2 <= total {
		if shorter, err := a.tryCondense(ctx, summaryOptions{auto: true, transcript: true}); err == nil && shorter {
			return a.draft(), "the older part of the history is a summary now", true
		}
		tokens, _ := shrink.Tokens(a.state())
		if n := a.truncate(d, tokens); n > 0 {
			return d, hiddenWords(n), true
		}
	}
	if size < minWithheld {
		return nil, "", false
	}
	w := a.withhold(at, false, refused.Message)
	if w == nil {
		return nil, "", false
	}
	w.What += " (" + strconv.Itoa(size) + " bytes)"
	d.Put(*w)
	return d, "left out of what is sent: " + w.What, true
}

// withhold names a block that is no longer sent; nil when the block is left out already or holds nothing of the
// wanted kind.
func (a *Agent) withhold(o contextwindow.Origin, images bool, reason string) *task.MessageWithheld {
	m := a.state().API()[o.Message]
	block := blockAt(m.Raw(), o.Block)
	if block == nil || images && !hasImage(block) {
		return nil
	}
	for _, w := range a.withheld() {
		if w.Message == m.ID && w.Block == o.Block && w.Provider == a.Model.Provider.Name() && (!w.Images || images) {
			return nil
		}
	}
	if esjson.TextOf(block, "type") == "image" {
		images = false
	}
	a.sending.window = window{}
	return &task.MessageWithheld{
		Run: a.Task.RunID, Message: m.ID, Block: o.Block, Images: images, Provider: a.Model.Provider.Name(),
		What: a.describeBlock(m, block, images), Reason: api.Shorten(reason, 300),
	}
}

// describeBlock describes a block in words.
func (a *Agent) describeBlock(m *task.Message, block []byte, images bool) string {
	typ, _ := esjson.GetString(block, "type")
	id, _ := esjson.GetString(block, "tool_use_id")
	switch typ {
	case "tool_result":
		what := "the result of " + a.describeCall(id)
		if images {
			return "the image in " + what
		}
		return what
	case "tool_use":
		id, _ = esjson.GetString(block, "id")
		return "the input of " + a.describeCall(id)
	case "image":
		return "an image of the user's"
	case "text":
		if m.Kind() == "assistant" {
			return "a text of the model's"
		}
		return "a text of the user's message"
	}
	return "a " + typ + " block"
}

func (a *Agent) describeCall(id string) string {
	c := a.state().Call(id)
	if c == nil {
		return "a tool call"
	}
	for _, key := range []string{"path", "file_path", "command"} {
		if v, _ := esjson.GetString(c.Input(), key); v != "" {
			return c.Name + " for " + api.Shorten(v, 120)
		}
	}
	return c.Name
}

// blockAt returns a block of a message's content, nil when there is none. A string counts as one block.
func blockAt(raw []byte, n int) []byte {
	content, _ := esjson.Get(raw, "content")
	if esjson.TypeOf(content) == esjson.TypeString && n == 0 {
		return rows.Text("")
	}
	if blocks := slices.Collect(esjson.Array(content)); n >= 0 && n < len(blocks) {
		return blocks[n]
	}
	return nil
}

func hasImage(block []byte) bool {
	typ, _ := esjson.GetString(block, "type")
	if typ == "tool_result" {
		content, _ := esjson.Get(block, "content")
		return slices.ContainsFunc(slices.Collect(esjson.Array(content)), func(inner []byte) bool {
			return esjson.TextOf(inner, "type") == "image"
		})
	}
	return typ == "image"
}
