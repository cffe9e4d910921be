package task

// begin starts a run. One that takes up what a run before it left, because the program
// was killed or because it only waited for an answer, goes on with that one's turns and
// cost: a limit that a kill or a question would reset is none. After any other end
// somebody has decided to spend more.
func (s *State) begin(e RunStarted, at int64) {
	before := s.Run
	s.Run = &Run{ID: e.Run, Settings: e.Settings, Head: e.Head, Started: at}
	if before != nil && (before.Outcome == "" || before.Outcome == "interrupted") {
		s.Run.Turns, s.Run.CostMicros = before.Turns, before.CostMicros
	}
	s.Runs++
	s.Settings = e.Settings
}

// spend counts a request against the run's limit. One whose price is unknown counts
// nothing.
func (r *Run) spend(e UsageChanged) {
	if r != nil && e.CostMicros != nil {
		grow(&r.CostMicros, *e.CostMicros)
	}
}
