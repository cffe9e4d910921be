package openai

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	if p.opts.Compatible {
		return p.history.Locate(refusal, "messages", int(p.before.Load()))
	}
	if h := p.last.Load(); h != nil {
		return h.Locate(refusal, "input", 0)
	}
	return 0, 0, false
}
