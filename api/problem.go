package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is an error for a client: an RFC 9457 object with suggestions.
type Problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status"`
	Code        string   `json:"code"` // for programs
	Detail      string   `json:"detail"`
	Instance    string   `json:"instance,omitempty"` // the path of the request
	Request     string   `json:"request_id,omitempty"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
	Errors      []Wrong  `json:"errors,omitempty"`

	Answer  *Answered       `json:"answer,omitempty"`          // the first answer to a question
	Model   string          `json:"model,omitempty"`           // of other_model: the one that would answer
	Unknown *UnknownProfile `json:"unknown_profile,omitempty"` // of unknown_profile

	Cause error  `json:"-"` // for the log, never for the client
	Allow string `json:"-"` // of a 405
	After string `json:"-"` // Retry-After, in seconds
}

// Wrong is one fault of a request.
type Wrong struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

func (p *Problem) Unwrap() error { return p.Cause }

// Encode writes a document as JSON with a line feed behind it. It escapes no HTML: a document is no page.
func Encode(doc any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(doc)
	return buf.Bytes(), err
}

// NewProblem makes a problem.
func NewProblem(status int, code, title, detail string, suggestions ...string) *Problem {
	return &Problem{Status: status, Code: code, Title: title, Detail: detail, Suggestions: suggestions}
}

// Later marks the problem as one that may pass: the same request may succeed after so many seconds; "" = some time.
func (p *Problem) Later(after string) *Problem {
	p.Retryable, p.After = true, after
	return p
}

// About names the task that the problem is about.
func (p *Problem) About(task string) *Problem {
	p.Task = task
	return p
}

// Because sets the cause.
func (p *Problem) Because(err error) *Problem {
	p.Cause = err
	return p
}

// Invalid is the problem of a document, with everything that is wrong with it.
func Invalid(wrong ...Wrong) *Problem {
	at := cmp.Or(wrong[0].Parameter, "the body")
	p := NewProblem(http.StatusUnprocessableEntity, "validation_failed", "Something in the body is wrong", at+": "+wrong[0].Detail)
	p.Errors = wrong
	return p
}

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
func Date(ms int64) *string {
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

// Moment reads a time that a user wrote, in Unix milliseconds: 2026-01-31, RFC 3339, or an age such as 7d or 2h before
// now. A time without a zone is local. An age of more than ten thousand years is refused.
func Moment(text string, now time.Time) (int64, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UnixMilli(), true
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 10_000*366 {
			return now.AddDate(0, 0, -n).UnixMilli(), true
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d).UnixMilli(), true
	}
	return 0, false
}
