// Package report holds the documents that every front door gives: tasks, runs, pages, trees, the files that a model
// knows, what would be sent, a history reconstructed from the other one. The command line prints them with --json and
// the server answers with them, so that the two cannot differ.
//
// It only reads: packages store and task decide what a task is and what state it is in. It changes nothing on disk.
package report

import (
	"time"
)

// The first and the last millisecond that RFC 3339 can write.
var (
	firstMoment = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	lastMoment  = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1
)

// Stamp writes a time, in Unix milliseconds, as all JSON of roost does: in RFC 3339. A time beyond its years, which a
// damaged task may hold, becomes the last one that RFC 3339 can write.
func Stamp(ms int64) string {
	return time.UnixMilli(min(max(ms, firstMoment), lastMoment)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// date is Stamp; nil for an unknown time.
func date(ms int64) *string {
	if ms <= 0 {
		return nil
	}
	text := Stamp(ms)
	return &text
}

// Page is a part of a list that continues at a cursor.
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
