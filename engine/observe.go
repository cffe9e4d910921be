package engine

// observe tells Options.Observe of events that are durable now.
func (e *Engine) observe(events []Event) {
	if e.opt.Observe == nil {
		return
	}
	for _, one := range events {
		e.opt.Observe(one)
	}
}
