package task

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/api"
)

// Encode gives an event's line in the journal.
func Encode(e Event) (json.RawMessage, error) {
	switch e := e.(type) {
	case Unknown:
		return e.Raw, nil
	case interface {
		encode() (json.RawMessage, error)
	}:
		return e.encode()
	}
	body, err := encodePlain(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.EventType(), err)
	}
	return withType(e.EventType(), body), nil
}

// Decode reads an event. An unknown type is not an error.
func Decode(raw json.RawMessage) (Event, error) {
	name := leadingType(raw)
	decode, known := decoders[name]
	if !known {
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
		name = head.Type
		if decode, known = decoders[name]; !known {
			return Unknown{Type: name, Raw: raw}, nil
		}
	}
	e, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return e, nil
}

// leadingType returns the type where withType puts it, "" when it has another place or is spelled with escapes. It
// saves reading a large event twice only to learn its type.
func leadingType(raw []byte) string {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return ""
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || end > 64 {
		return ""
	}
	return string(rest[:end])
}

var decoders = map[string]func(json.RawMessage) (Event, error){
	"task.created":       into[Created],
	"task.adopted":       into[Adopted],
	"foreign.imported":   into[ForeignImported],
	"foreign.refused":    into[ForeignRefused],
	"task.changed":       into[Changed],
	"run.queued":         into[RunQueued],
	"run.started":        into[RunStarted],
	"run.waiting":        into[RunWaiting],
	"run.ended":          into[RunEnded],
	"turn.started":       into[TurnStarted],
	"turn.failed":        into[TurnFailed],
	"turn.ended":         into[TurnEnded],
	"message.withheld":   into[MessageWithheld],
	"history.truncated":  into[HistoryTruncated],
	"history.condensed":  into[HistoryCondensed],
	"tool.started":       into[ToolStarted],
	"tool.process":       into[ToolProcess],
	"tool.finished":      decodeToolFinished,
	"question.opened":    into[api.QuestionOpened],
	"question.closed":    into[api.QuestionClosed],
	"input.queued":       into[InputQueued],
	"input.taken":        into[InputTaken],
	"usage.changed":      into[UsageChanged],
	"file.changed":       into[FileChanged],
	"subtask.started":    into[SubtaskStarted],
	"subtask.ended":      into[SubtaskEnded],
	"epoch.opened":       into[EpochOpened],
	"message.added":      decodeMessageAdded,
	"message.changed":    decodeMessageChanged,
	"message.text_saved": decodeTextSaved,
	"message.hidden":     into[MessageHidden],
	"history.rewound":    into[Rewound],
	"history.undone":     into[Undone],
	"task.forked":        into[Forked],
	"task.received":      into[Received],

	"checkpoint.saved":     into[CheckpointSaved],
	"checkpoint.restoring": into[RestoreBegun],
	"checkpoint.restored":  into[RestoreEnded],
}

func into[E Event](raw json.RawMessage) (Event, error) {
	var e E
	err := json.Unmarshal(raw, &e)
	return e, err
}
