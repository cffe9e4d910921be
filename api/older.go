package api

// OlderRun is the body of the older restart call.
type OlderRun struct {
	Text      string `json:"task"`                       // what to do
	Mode      string `json:"mode,omitempty"`             //
	Task      string `json:"taskId,omitempty"`           // the task to continue; with restartTask
	Restart   bool   `json:"restartTask,omitempty"`      //
	Verbose   bool   `json:"verbose,omitempty"`          // also send reasoning and the output of commands
	IdleMS    int64  `json:"slidingTimeoutMs,omitempty"` // stop when nothing happens for this long; 0 = as the settings have it
	LogPrompt bool   `json:"logSystemPrompt,omitempty"`  // accepted and ignored
	LogModel  bool   `json:"logLlm,omitempty"`           // the same
}

// OlderAnswer is the body of an answer to a question of the older call.
type OlderAnswer struct {
	Answer string `json:"answer"` // the text or number of a suggestion, or other text
}

// OlderChoice is a suggestion.
type OlderChoice struct {
	Answer string `json:"answer"`
}

// OlderQuestion is an open question as the older call shows it.
type OlderQuestion struct {
	ID          string        `json:"id"`
	Job         string        `json:"jobId"`
	Task        string        `json:"taskId"`
	Question    string        `json:"question"`
	Kind        string        `json:"kind"`
	Suggestions []OlderChoice `json:"suggestions"`
	State       string        `json:"state"` // pending
	CreatedAt   string        `json:"createdAt"`
}

// OlderQuestions is a list of them.
type OlderQuestions struct {
	Questions []OlderQuestion `json:"questions"`
	Total     int             `json:"total"`
	Timestamp string          `json:"timestamp"`
}

// OlderAnswered is the reply to an accepted answer.
type OlderAnswered struct {
	Success   bool   `json:"success"`
	Message   string `json:"message"`
	Question  string `json:"questionId"`
	Task      string `json:"taskId"`
	Job       string `json:"jobId"`
	Timestamp string `json:"timestamp"`
}

// OlderFailure is an error of the older call.
type OlderFailure struct {
	Error       string   `json:"error"`
	Message     string   `json:"message"`
	Code        string   `json:"code"`
	Task        *string  `json:"taskId"`
	Suggestions []string `json:"suggestions"`
	Timestamp   string   `json:"timestamp"`
}

// OlderEvent is one line of the older call's stream.
type OlderEvent struct {
	Type        string         `json:"type"`
	Job         string         `json:"jobId"`
	Timestamp   string         `json:"timestamp"`
	Message     string         `json:"message"`
	Text        string         `json:"task,omitempty"`
	Task        string         `json:"taskId"`
	Say         string         `json:"say,omitempty"`
	Question    string         `json:"questionId,omitempty"`
	Kind        string         `json:"kind,omitempty"`
	Suggestions *[]OlderChoice `json:"suggestions,omitempty"`
	Usage       *OlderUsage    `json:"tokenUsage,omitempty"`
	Error       string         `json:"error,omitempty"`
	Outcome     string         `json:"outcome,omitempty"`
	Restart     string         `json:"restartCommand,omitempty"`
}

// OlderUsage is what a task has spent.
type OlderUsage struct {
	In          int64    `json:"totalTokensIn"`
	Out         int64    `json:"totalTokensOut"`
	CacheWrites int64    `json:"totalCacheWrites"`
	CacheReads  int64    `json:"totalCacheReads"`
	Cost        *float64 `json:"totalCost"` // US dollars; null = unknown
}
