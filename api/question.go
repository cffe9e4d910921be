package api

// QuestionOpened is a question to the user.
type QuestionOpened struct {
	Question string   `json:"question"`
	Kind     string   `json:"kind"` // approval, followup, completion, resume, mistake_limit, request_failed
	Message  uint64   `json:"message,omitempty"`
	Call     string   `json:"call,omitempty"`
	Text     string   `json:"text"`
	Choices  []string `json:"choices,omitempty"`
	// Modes are the modes in which the choices continue, "" for the present one; absent when no choice changes the mode.
	Modes []string `json:"modes,omitempty"`
	Diff  string   `json:"diff,omitempty"`

	Command string `json:"command,omitempty"` // the whole command that is to be approved, as it would run
	Dir     string `json:"cwd,omitempty"`     // the folder where it would run
	Always  string `json:"always,omitempty"`  // what an answer "always" allows, in words; "" = it allows this once
}

// Same reports whether a user who agrees to q agrees to the same as one who agrees to other.
func (q QuestionOpened) Same(other QuestionOpened) bool {
	return q.Call == other.Call && q.Text == other.Text && q.Diff == other.Diff && q.Command == other.Command && q.Dir == other.Dir
}

// EventType is the type of the event that opens it.
func (QuestionOpened) EventType() string { return "question.opened" }

// QuestionClosed is its answer.
type QuestionClosed struct {
	Question string `json:"question"`
	Approve  *bool  `json:"approve,omitempty"`
	Text     string `json:"text,omitempty"`
	By       string `json:"by"`
	Input    string `json:"input,omitempty"`  // the message that the answer came with
	Reason   string `json:"reason,omitempty"` // why it closed without an answer: superseded, cancelled
}

// EventType is the type of the event that closes it.
func (QuestionClosed) EventType() string { return "question.closed" }
