package anthropic

import "github.com/roost-dev/roost/llm/wire"

// Locate implements llm.Locator: messages go out one by one and block by block, so
// that the API's own numbers are ours.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	path, names := wire.Path(refusal, "messages")
	if path == nil {
		return 0, 0, false
	}
	block = -1
	if len(path) > 1 && names[1] == "content" {
		block = path[1]
	}
	return path[0], block, true
}
