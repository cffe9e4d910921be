package task

import "github.com/roost-dev/roost/api"

type (
	QuestionClosed = api.QuestionClosed
	QuestionOpened = api.QuestionOpened
)

type (
	FileVersion = api.FileVersion
)

type (
	Limits = api.RunLimits
)
