package shell

// Process identifies a running command beyond the reuse of its number.
type Process struct {
	PGID    int    `json:"pgid"`
	Started int64  `json:"started"`        // kernel start time: clock ticks since boot (Linux), Unix microseconds (macOS), 0 elsewhere
	Boot    string `json:"boot"`           // boot id
	Mark    string `json:"mark,omitempty"` // random word in the environment of all it starts
}

// Member is one process of a command.
type Member struct {
	PID     int
	Name    string
	started int64
	grouped bool // in the command's own process group
}
