package task

// begin starts a run. One that takes up what a run before it left, because the program
// was killed or because it only waited for an answer, goes on with that one's turns, cost
// and time: a limit that a kill or a question would reset is none. After any other end
// somebody has decided to spend more.
func (s *State) begin(e RunStarted, at int64) {
	before := s.Run
	s.Run = &Run{ID: e.Run, Settings: e.Settings, Head: e.Head, Started: at}
	s.takeUp(before)
	if before != nil && before.ID == e.Run { // it was queued, or waited
		s.Run.Queued, s.Run.After = before.Queued, before.After
		if before.Started != 0 {
			s.Run.Started = before.Started
		}
	} else {
		s.Runs++
	}
	s.Settings = e.Settings
}

// queueRun notes a run that will begin.
func (s *State) queueRun(e RunQueued, at int64) {
	before := s.Run
	if before != nil && before.ID == e.Run {
		return // it is known, and maybe further
	}
	s.Run = &Run{ID: e.Run, Settings: e.Settings, Queued: at, Yes: e.Yes, After: "none"}
	s.takeUp(before)
	if before != nil {
		s.Run.After = before.Outcome
	}
	s.Runs++
}

// takeUp goes on with the turns, the cost and the time of a run that has no end of its own.
func (s *State) takeUp(before *Run) {
	if before.Unended() {
		s.Run.Turns, s.Run.CostMicros, s.Run.WorkedMS = before.Turns, before.CostMicros, before.WorkedMS
	}
}

// Unended reports whether the run has no end of its own: the next one takes up what it has
// used of its limits.
func (r *Run) Unended() bool {
	return r != nil && (r.Outcome == "" || r.Outcome == "interrupted")
}

// worked notes how long a run worked, as far as it is told.
func (r *Run) worked(ms int64) {
	if r != nil {
		r.WorkedMS = max(r.WorkedMS, ms)
	}
}

// spend counts a request against the run's limit. One whose price is unknown counts
// nothing.
func (r *Run) spend(e UsageChanged) {
	if r != nil && e.CostMicros != nil {
		grow(&r.CostMicros, *e.CostMicros)
	}
}
