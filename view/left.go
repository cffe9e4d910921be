package view

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// left are the members of an object that an item does not show yet. A reader takes what it shows in its own words; the
// rest is shown below, so that nothing is lost that a later version of a program adds or writes in another shape.
type left struct {
	raw  []byte
	list []param
}

func leftOf(raw []byte) *left {
	list, _ := params(raw)
	return &left{raw, list}
}

// words takes a text; "" when there is none.
func (l *left) words(name string) (text string) {
	l.list = slices.DeleteFunc(l.list, func(p param) bool {
		if p.name != name || !p.words {
			return false
		}
		text = p.text
		return true
	})
	return text
}

// count takes a whole number.
func (l *left) count(name string) (int64, bool) {
	n, ok := esjson.GetInt(l.raw, name)
	if ok {
		l.drop(name)
	}
	return n, ok
}

// drop takes members that are shown already, or mean nothing to a reader.
func (l *left) drop(names ...string) {
	l.list = slices.DeleteFunc(l.list, func(p param) bool { return slices.Contains(names, p.name) })
}

// onto adds the remaining members to an item, one a line.
func (l *left) onto(it *Item) {
	list := slices.DeleteFunc(l.list, func(p param) bool {
		return strings.TrimSpace(p.text) == "" || !p.words && (p.text == "[]" || p.text == "{}")
	})
	switch rest := members(list); {
	case len(list) == 0:
	case it.Diff || it.Body == "": // text behind a diff would look like a part of it
		it.Body = strings.TrimSuffix(rest+"\n"+it.Body, "\n")
	default:
		it.Body = strings.TrimRight(it.Body, "\n") + "\n" + rest
	}
}
