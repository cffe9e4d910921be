package store

import "github.com/roost-dev/roost/api"

type (
	Damage        = api.Damage
	MessageCounts = api.MessageCounts
	Received      = api.Received
	SourceState   = api.SourceState
	Summary       = api.Summary
	Usage         = api.Usage
)
