package script

// Turns is the number of replies of a task that has no turns of its own, without the completion that follows the last.
func (s *Script) Turns() int { return len(s.groups) - 1 }
