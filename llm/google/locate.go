package google

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	return p.history.Locate(refusal, "contents", 0)
}
