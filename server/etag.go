package server

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
)

// tagOf is the ETag of a document: the same bytes at the same position have the same one. The tag of a task has two
// parts. If-Match compares the first, which covers the task itself. The second covers its size on disk, which changes
// while Roo's files are written behind an unchanged journal, and its copies: a change of a task does not depend on them.
// A tag without the second part was rejected: two different bodies would have one tag.
func tagOf(doc any, body []byte) string {
	t, ok := doc.(tagged)
	row, isRow := t.doc.(api.Summary)
	if !ok || !isRow {
		return `"` + digest(body, t.head) + `"`
	}
	extra := strconv.FormatInt(row.Size, 36)
	if len(row.Copies) > 0 {
		extra += "." + digest([]byte(strings.Join(row.Copies, "\x00")), events.Cursor{})
	}
	row.Size, row.Copies = 0, nil
	shown, err := bytesOf(row)
	if err != nil { // it was just encoded
		return `"` + digest(body, t.head) + `"`
	}
	return `"` + digest(shown, t.head) + "." + extra + `"`
}

func digest(body []byte, head events.Cursor) string {
	sum := sha256.New()
	sum.Write(body)
	if head != (events.Cursor{}) {
		sum.Write([]byte(head.String()))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// guards is the part of a tag that If-Match compares.
func guards(tag string) string {
	if before, _, ok := strings.Cut(tag, "."); ok {
		return before + `"`
	}
	return tag
}

// matches reports whether an If-None-Match header holds a tag; weak tags count, as the standard requires.
func matches(headers []string, tag string) bool {
	for _, header := range headers {
		for _, one := range strings.Split(header, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == tag {
				return true
			}
		}
	}
	return false
}

// matchesStrongly is matches for If-Match: weak tags do not count, and neither does the second part of a tag.
func matchesStrongly(headers []string, tag string) bool {
	for _, header := range headers {
		for _, one := range strings.Split(header, ",") {
			if one = strings.TrimSpace(one); one == "*" || !strings.HasPrefix(one, "W/") && guards(one) == guards(tag) {
				return true
			}
		}
	}
	return false
}

// guarded checks If-Match, and keeps other changes with If-Match out until the returned function is called. Another
// process can still change the task in between, so the code that takes the lock of the task compares again
// (service.Task.Expecting); a patch compares the members that it changes, see service.Call.
func (s *Server) guarded(a *asked) (unlock func(), err error) {
	want := a.Header.Values("If-Match")
	if len(want) == 0 || a.id == "" {
		return func() {}, nil
	}
	t, err := s.service.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	free, err := s.guards.Lock(a.Context(), t.Name())
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, nil)
	if err == nil {
		var body []byte
		if body, err = bytesOf(doc); err == nil && !matchesStrongly(want, tagOf(doc, body)) {
			if t.ChangedBy(a.Context(), a.call()) { // this request itself changed the task
				return free, nil
			}
			err = report.MovedProblem(a.id)
		}
	}
	if err != nil {
		free()
		return nil, err
	}
	a.seen = &doc
	ctx, done := t.Expecting(a.Context(), doc.head)
	was := a.Request
	a.Request = a.WithContext(ctx)
	return func() {
		a.Request = was
		done()
		free()
	}, nil
}
