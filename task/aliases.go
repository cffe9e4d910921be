package task

import "github.com/roost-dev/roost/api"

// Parts of events that front doors show as they are have one shape, in package api.
type (
	// QuestionClosed is the event with the answer to a question, or with the reason why there is none.
	QuestionClosed = api.QuestionClosed
	// QuestionOpened is the event of a question to the user.
	QuestionOpened = api.QuestionOpened
	// FileVersion is what a path held at one moment.
	FileVersion = api.FileVersion
	// Limits bound a run.
	Limits = api.RunLimits
)
