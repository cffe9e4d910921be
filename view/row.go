package view

import "github.com/roost-dev/roost/esjson"

// UI reads one element of the history that the user sees. number is its number, from 1: the first row of Roo is the
// user's own.
func UI(raw []byte, number int) Item {
	it := Item{Number: number, Class: Unknown}
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		it.Kind, it.Title, it.Body = "invalid", "not a message", string(raw)
		return it
	}
	it.TS, _ = esjson.GetInt(raw, "ts")
	it.Partial, _ = esjson.GetBool(raw, "partial")
	text, _ := esjson.GetString(raw, "text")
	it.Pictures = pictures(raw)
	it.Images = len(it.Pictures)
	it.Data = whole(addresses(raw))
	typ, _ := esjson.GetString(raw, "type")
	kind, _ := esjson.GetString(raw, typ)
	it.Kind = typ + ":" + kind
	known := false
	switch typ {
	case "ask":
		known = ask(&it, kind, text)
	case "say":
		known = say(&it, kind, text, raw)
	}
	if !known {
		it.Title, it.Body = it.Kind, text
		payload(&it, "", text)
	}
	return it
}
