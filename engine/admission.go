package engine

// Refuse starts nothing more until Admit: what works goes on, what waits for a person goes
// on waiting and can be answered, what is queued stays queued. Unlike Drain it lets nothing
// go and waits for nothing, so that it can be taken back as if it had not been.
func (e *Engine) Refuse() {
	e.desk.mu.Lock()
	e.desk.draining = true
	e.desk.mu.Unlock()
}
