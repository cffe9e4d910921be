package task

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// The events that carry messages are most of a log's bytes. They are read here
// member by member, without copying and without encoding/json, which would also
// replace the half characters that a stream may be cut at. The bytes in an event
// belong to the commit it came from.

func decodeMessageAdded(raw json.RawMessage) (Event, error) {
	var e MessageAdded
	err := members(raw, func(key string, val []byte) (err error) {
		switch key {
		case "history":
			var h string
			h, err = text(val)
			e.History = History(h)
		case "message":
			e.Message, err = number(val)
		case "before":
			e.Before, err = number(val)
		default:
			err = e.Body.member(key, val)
		}
		return err
	})
	return e, err
}

func decodeMessageChanged(raw json.RawMessage) (Event, error) {
	var e MessageChanged
	err := members(raw, func(key string, val []byte) (err error) {
		if key == "message" {
			e.Message, err = number(val)
			return err
		}
		return e.Body.member(key, val)
	})
	return e, err
}

func decodeTextSaved(raw json.RawMessage) (Event, error) {
	var e MessageTextSaved
	err := members(raw, func(key string, val []byte) (err error) {
		switch key {
		case "message":
			e.Message, err = number(val)
		case "text":
			e.Text, err = text(val)
		}
		return err
	})
	return e, err
}

// decodeToolFinished leaves the big member alone and everything else to
// encoding/json.
func decodeToolFinished(raw json.RawMessage) (Event, error) {
	var result json.RawMessage
	var rest esjson.Object
	err := members(raw, func(key string, val []byte) error {
		if key == "result" {
			result = val
		} else {
			rest.Raw(key, val)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var e ToolFinished
	err = json.Unmarshal(rest.Bytes(), &e)
	e.Result = result
	return e, err
}

func (b *Body) member(key string, val []byte) (err error) {
	switch key {
	case "raw":
		b.Raw = val
	case "blob":
		b.Blob, err = text(val)
	case "compose":
		if esjson.TypeOf(val) != esjson.TypeArray {
			return fmt.Errorf("%.40s is no list of pieces", val)
		}
		for one := range esjson.Array(val) {
			var p Piece
			err := members(one, func(key string, val []byte) (err error) {
				switch key {
				case "literal":
					p.Literal, err = text(val)
				case "blob":
					p.Blob, err = text(val)
				case "text_of":
					p.TextOf, err = number(val)
				case "result":
					p.Result, err = text(val)
				}
				return err
			})
			if err != nil {
				return err
			}
			b.Compose = append(b.Compose, p)
		}
	}
	return err
}

// members calls visit for each member of an object until it returns an error.
func members(raw []byte, visit func(key string, val []byte) error) error {
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		return fmt.Errorf("%.40s is no JSON object", raw)
	}
	for key, val := range esjson.Members(raw) {
		if err := visit(key, val); err != nil {
			return fmt.Errorf("member %s: %w", key, err)
		}
	}
	return nil
}

func text(val []byte) (string, error) {
	if esjson.TypeOf(val) != esjson.TypeString {
		return "", fmt.Errorf("%.40s is no string", val)
	}
	return esjson.Unquote(val)
}

func number(val []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(val), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is no number", val)
	}
	return n, nil
}
