package server

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// tagged is a document of a task with the position of its journal: two changes within one millisecond that cancel each
// other still give another tag.
type tagged struct {
	doc  any
	head events.Cursor
}

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
// (store.Expecting); a patch compares the members that it changes, see seen.
func (s *Server) guarded(a *asked) (unlock func(), err error) {
	want := a.Header.Values("If-Match")
	if len(want) == 0 || a.id == "" {
		return func() {}, nil
	}
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	free, err := s.guards.Lock(a.Context(), ref.Source+":"+ref.ID)
	if err != nil {
		return nil, err
	}
	doc, err := s.taskDocument(a, ref)
	if err == nil {
		var body []byte
		if body, err = bytesOf(doc); err == nil && !matchesStrongly(want, tagOf(doc, body)) {
			if s.didIt(a, ref) { // this request itself changed the task
				return free, nil
			}
			err = errSeen(a)
		}
	}
	if err != nil {
		free()
		return nil, err
	}
	a.seen = &doc
	ctx, done := store.Expecting(a.Context(), ref, doc.head.Seq)
	was := a.Request
	a.Request = a.WithContext(ctx)
	return func() {
		a.Request = was
		done()
		free()
	}, nil
}

// didIt reports whether an earlier attempt of this request changed the task.
func (s *Server) didIt(a *asked, ref store.Ref) bool {
	if !a.again || a.key() == "" {
		return false
	}
	if _, err := s.opt.Engine.RunByID(a.Context(), a.runFor(ref.ID)); err == nil {
		return true
	}
	done, err := s.opt.Store.CommitsBy(a.Context(), ref, a.key(), s.opt.Now().Add(-2*keptFor).UnixMilli())
	return err == nil && len(done) > 0
}

// errSeen is the problem of a change of a task that is not as the client saw it.
func errSeen(a *asked) error { return report.MovedProblem(a.id) }
