// Package report makes the documents that every front door gives of tasks: pages,
// trees, the files that a model knows, what would be sent, what stands in for a
// history that is gone. The shell prints them with --json and the server answers with
// them, so that the two cannot differ.
//
// It reads, and decides nothing: what a task is and how it stands is store's and
// task's to say. Nothing on disk changes by it.
package report

import (
	"time"
)

// The first and the last millisecond that RFC 3339 has a name for.
var (
	firstMoment = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	lastMoment  = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1
)

// Stamp is a time, in Unix milliseconds, as all JSON of roost has it: in RFC 3339. A time
// beyond its years, which a damaged task may name, is the last one that it has.
func Stamp(ms int64) string {
	return time.UnixMilli(min(max(ms, firstMoment), lastMoment)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// date is Stamp, nil for a time that is not known.
func date(ms int64) *string {
	if ms <= 0 {
		return nil
	}
	text := Stamp(ms)
	return &text
}

// Page is the contract's shape of a list that goes on at a cursor.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next_cursor"` // null at the end
}

// PageOf is a page of some items; next is "" at the end.
func PageOf[T any](items []T, next string) Page[T] {
	out := Page[T]{Items: items}
	if out.Items == nil {
		out.Items = []T{} // JSON shows [] and not null
	}
	if next != "" {
		out.Next = &next
	}
	return out
}
