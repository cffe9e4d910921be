package anthropic

import (
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "anthropic"

// Options configure a Provider. Models without an effort get a share of their output limit as budget for thinking.
// Thinking is left out of a request that continues a tool call made without it: the API refuses that, and such
// histories come from other models or modes.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct{ *wire.Provider }

var _ llm.Provider = (*Provider)(nil)
