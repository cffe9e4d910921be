package engine

// Refuse starts nothing more until Admit: what works goes on, what waits for a person goes
// on waiting and can be answered, what is queued stays queued. An answer goes on with the run
// that asked, also where that let its task go meanwhile: it was begun before, and had its
// place. Unlike Drain it lets nothing go and waits for nothing, so that it can be taken back
// as if it had not been.
func (e *Engine) Refuse() {
	e.desk.mu.Lock()
	e.desk.draining = true
	e.desk.mu.Unlock()
}

// answers is nil while an answer may go on with a run that let its task go: not behind Drain,
// which would have to let it go again, with the answer in its hands.
func (e *Engine) answers() error {
	e.desk.mu.Lock()
	leaving := e.desk.leaving
	e.desk.mu.Unlock()
	if err := e.admits(); leaving || err == ErrClosed { //nolint:errorlint // it is never wrapped
		return err
	}
	return nil
}
