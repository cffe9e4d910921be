package openai

import (
	"encoding/json"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// details puts reasoning_details together. They arrive in pieces: pieces with the same
// type and index form one element. Its text grows, and its other members are those of
// the newest piece. The server wants the elements back as they are, so members that this
// package does not know are kept too.
type details struct {
	list []*detail
	at   map[string]*detail
}

type detail struct {
	keys   []string // in the order in which they came
	values map[string][]byte
	words  map[string][]byte // text, summary and data, unquoted
}

// isText reports whether pieces of a member continue its text. Other members are replaced.
func isText(key string) bool { return key == "text" || key == "summary" || key == "data" }

// add takes a delta's array and returns the readable text in it.
func (d *details) add(array []byte) (text string) {
	if esjson.TypeOf(array) != esjson.TypeArray {
		return ""
	}
	for piece := range esjson.Array(array) {
		if esjson.TypeOf(piece) != esjson.TypeObject {
			continue
		}
		typ, _ := esjson.GetString(piece, "type")
		index, indexed := esjson.GetInt(piece, "index")
		if !indexed {
			index = -1
			// Without an index, only text continues the element before it.
			if typ == "reasoning.encrypted" {
				index = -2 - int64(len(d.list))
			}
		}
		one := d.element(typ + "-" + strconv.FormatInt(index, 10))
		for key, val := range esjson.Members(piece) {
			if added := one.set(key, val); key != "data" {
				text += added
			}
		}
	}
	return text
}

func (d *details) element(name string) *detail {
	if one := d.at[name]; one != nil {
		return one
	}
	if d.at == nil {
		d.at = map[string]*detail{}
	}
	one := &detail{values: map[string][]byte{}, words: map[string][]byte{}}
	d.at[name], d.list = one, append(d.list, one)
	return one
}

// set takes a member over and returns the text that it added.
func (e *detail) set(key string, val []byte) string {
	has, known := e.values[key]
	if !known {
		e.keys = append(e.keys, key)
	}
	switch {
	case isText(key) && esjson.TypeOf(val) == esjson.TypeString:
		s, err := esjson.Unquote(val)
		if err != nil {
			return ""
		}
		e.values[key], e.words[key] = []byte(`""`), append(e.words[key], s...)
		return s
	case known && esjson.TypeOf(val) == esjson.TypeNull && esjson.TypeOf(has) != esjson.TypeNull:
		// A later piece has null for members that an earlier one filled.
	default:
		e.values[key] = append([]byte(nil), val...)
	}
	return ""
}

// array is the JSON array to store with the message, nil when nothing arrived.
func (d *details) array() json.RawMessage {
	if len(d.list) == 0 {
		return nil
	}
	out := []byte{'['}
	for i, e := range d.list {
		var o esjson.Object
		for _, key := range e.keys {
			if words, is := e.words[key]; is {
				o.String(key, string(words))
			} else {
				o.Raw(key, e.values[key])
			}
		}
		out = append(append(out, separator(i, "")...), o.Bytes()...)
	}
	return append(out, ']')
}
