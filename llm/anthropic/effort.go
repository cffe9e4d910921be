package anthropic

import (
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// shares of a reply's tokens that models without an effort of their own may think
// for, in percent.
var shares = map[string]int{"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 95}

// generationOf is the number behind a Claude's family, 4.5 as 45; ok is false for
// older names and those of other models.
func generationOf(model string) (family string, number int, ok bool) {
	parts := strings.Split(model, "-")
	if len(parts) < 3 || parts[0] != "claude" {
		return "", 0, false
	}
	major, err := strconv.Atoi(parts[2])
	if err != nil || major > 99 {
		return "", 0, false // claude-3-opus, claude-instant-1
	}
	number = major * 10
	if len(parts) > 3 && len(parts[3]) == 1 { // longer ones are dates
		if minor, err := strconv.Atoi(parts[3]); err == nil {
			number += minor
		}
	}
	return parts[1], number, true
}

// takesEffort reports whether a model has an effort parameter, and adapts whether it
// decides itself how long it thinks. Both are documented by model; models newer than
// this list are treated like the newest in it.
func takesEffort(model string) bool {
	family, n, ok := generationOf(model)
	return ok && (n >= 46 || family == "opus" && n == 45)
}

func decidesThinking(model string) bool {
	_, n, ok := generationOf(model)
	return ok && n >= 46
}

// appendEffort requests as much thinking as the user wants: as the model's effort where it has
// one, else as a budget. It returns the body and the budget, 0 for none.
func (p *Provider) appendEffort(b []byte, model string, maxTokens int) ([]byte, int) {
	word := p.Effort
	switch {
	case word == "" || word == "none":
		return b, 0
	case !takesEffort(model):
		return b, maxTokens * shares[word] / 100
	case word == "minimal":
		word = "low" // the least that there is
	}
	b = append(b, `,"output_config":{"effort":`...)
	return append(esjson.Quote(b, word), '}'), 0
}
