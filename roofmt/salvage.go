package roofmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/sleep"
)

// begin opens a file that scanned will read.
func (r *reader) begin(name string) scan {
	s := scan{name: name}
	if s.file, s.print, s.err = r.open(name); s.err != nil {
		if s.state = Unreadable; errors.Is(s.err, fs.ErrNotExist) {
			s.state = Missing
		}
	}
	return s
}

// scan reads one file. The caller closes scan.file.
func (r *reader) scan(name string, kind Kind) scan { return r.scanned(r.begin(name), kind) }

// scanned reads an open file.
func (r *reader) scanned(s scan, kind Kind) scan {
	s = r.steady(s, func(s *scan) (err error) {
		s.spans, s.notes, s.overlong = nil, nil, overlong{}
		if r.noter != nil {
			s.notes = r.noter(kind)
		}
		s.tail, err = r.split(s)
		return err
	})
	if s.err != nil {
		return s
	}
	switch s.tail.End {
	case esjson.EndEmpty:
		s.state = Empty
	case esjson.EndNotArray:
		s.state = NotArray
	default:
		if s.state = Damaged; s.tail.Clean() && !s.overlong.some() {
			s.state = Present
		}
	}
	if s.tail.End == esjson.EndBroken || s.tail.End == esjson.EndAfter {
		r.resync(&s, kind)
	}
	if s.unstable {
		s.notes = nil // the file may not hold these messages any more
	}
	return s
}

// steady splits an open file, and repeats that when the file changed meanwhile. Only a file that is written in place
// can change; replacing a file leaves the open one unchanged.
func (r *reader) steady(s scan, split func(*scan) error) scan {
	for try := range 3 {
		if try > 0 {
			_ = s.file.Close()
			s = r.begin(s.name)
		}
		if s.err != nil {
			return s
		}
		if s.err = split(&s); s.err != nil {
			s.state = Unreadable
			return s
		}
		info, err := s.file.Stat()
		if s.unstable = err != nil || fingerprintOf(info) != s.print; !s.unstable {
			break
		}
	}
	return s
}

// split finds a file's messages and passes them to the Noter.
func (r *reader) split(s *scan) (esjson.Tail, error) {
	file := inputfile.ContextReader(r.ctx, s.file)
	if s.notes == nil {
		return esjson.Split(file, func(e esjson.Element) error {
			s.take(e)
			return nil
		})
	}
	return esjson.SplitIndex(file, noteLevels, noteRoom, func(e esjson.Element, x *esjson.Index) error {
		if s.take(e) {
			s.note(e, x)
		}
		return nil
	})
}

// hasShape reports whether an object looks like a message of the given history.
func hasShape(raw []byte, kind Kind) bool {
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return false
	}
	if kind == API {
		role, ok := esjson.GetString(raw, "role")
		return ok && (role == "user" || role == "assistant")
	}
	t, ok := esjson.GetString(raw, "type")
	_, hasTS := esjson.GetFloat(raw, "ts")
	return ok && hasTS && (t == "ask" || t == "say")
}

// resyncLimit bounds the bytes after damage that are searched.
const resyncLimit = 256 << 20

// resync recovers whole messages after damage, such as a hole of NULs where a page was lost. It takes an object only
// if it has the shape of a message, since content blocks and tool inputs are objects too. An object inside a string
// cannot look like one, since its quotes are escaped. Work is bounded to a few passes over the rest.
func (r *reader) resync(s *scan, kind Kind) {
	rest := s.print.Size - s.tail.Off
	if rest <= 0 || rest > resyncLimit {
		return
	}
	p := make([]byte, rest)
	if n, err := s.file.ReadAt(p, s.tail.Off); err != nil && err != io.EOF {
		p = p[:n]
	}
	var found []esjson.Element
	budget := 8*len(p) + 1<<20
	for i := 0; i < len(p) && budget > 0 && r.ctx.Err() == nil; {
		n := bytes.IndexByte(p[i:], '{')
		if n < 0 {
			break
		}
		if i += n; !bytes.HasPrefix(bytes.TrimLeft(p[i+1:min(len(p), i+64)], " \t\r\n"), []byte{'"'}) {
			i++ // also lists that are spelled over lines hold messages
			continue
		}
		end, ok := esjson.Prefix(p[i:])
		budget -= end + 64
		if !ok {
			i++
			continue
		}
		if hasShape(p[i:i+end], kind) {
			found = append(found, esjson.Element{Off: s.tail.Off + int64(i), Len: int64(end)})
		}
		i += end
	}
	s.extra = len(found)
	for _, e := range found {
		if s.take(e) {
			s.note(e, nil)
		}
	}
}

// pairedWithin is the greatest distance, in milliseconds, between the two temporary names of one write.
const pairedWithin = 60_000

// document reads one history: its own file or, when that is missing, empty or unparsable, the newest complete
// leftover beside it. One write leaves two, the old list and the new one; of these the one with more messages counts:
// after an append that is the new list, after a rewind the old one, so no message is lost.
func (r *reader) document(first scan, kind Kind) *Document {
	name := first.name
	own := r.settled(first, kind)
	if own.state == Missing && r.links(name) {
		own.state, own.err = Unreadable, errNothingThere
	}
	if own.state == Unreadable {
		r.unread(name, own.err)
	}
	best := own
	var bestMS int64
	if own.state != Present {
		for _, l := range r.leftovers {
			if l.Target != name {
				continue
			}
			s := r.scan(l.Name, kind)
			if s.state == Unreadable {
				r.unread(l.Name, s.err)
			}
			better := s.state == Present && len(s.spans) > 0 && len(s.spans) >= len(best.spans)
			if better && bestMS != 0 {
				better = len(s.spans) > len(best.spans) && bestMS-l.MS < pairedWithin
			}
			if best = choose(best, s, better); better {
				bestMS = l.MS
			}
		}
		// No leftover is complete: use the one with the most messages.
		for i := 0; i < len(r.leftovers) && bestMS == 0; i++ {
			if l := r.leftovers[i]; l.Target == name {
				s := r.scan(l.Name, kind)
				best = choose(best, s, len(s.spans) > len(best.spans))
			}
		}
	}
	d := &Document{Kind: kind, Name: name, State: own.state, Print: own.print}
	d.use(best)
	r.folder.Abridged = r.folder.Abridged || own.overlong.some() || best.overlong.some()
	r.report(d, own, best)
	return d
}

func (d *Document) use(s scan) {
	d.file, d.Spans, d.Tail, d.SourcePrint, d.Unstable = s.file, s.spans, s.tail, s.print, s.unstable
	d.Notes = s.notes
	if s.file != nil {
		d.Source = s.name
	}
}

// choose keeps one of two scans and closes the other's file.
func choose(a, b scan, second bool) scan {
	if second {
		a, b = b, a
	}
	if b.file != nil {
		_ = b.file.Close()
	}
	return a
}

// settleTries bounds the reads of a file that another program is just writing.
const settleTries = 8

// settled reads a document's own file again until the file is whole. While Roo writes, the file is absent for a
// moment: if its lock exists, or the file is listed again, another read some milliseconds later finds it whole.
// Without a lock there is no wait.
func (r *reader) settled(s scan, kind Kind) scan {
	name, quiet := s.name, 0
	// A lock that has gone by the next listing was held when the other files were read: its holder may have replaced them since.
	defer func(before []string) {
		for _, lock := range before {
			if lock != name && !slices.Contains(r.folder.Locks, lock) {
				r.folder.Locks = append(r.folder.Locks, lock)
			}
		}
		slices.Sort(r.folder.Locks)
	}(r.folder.Locks)
	for range settleTries {
		if s.state == Present || r.list() != nil {
			break
		}
		busy := slices.Contains(r.folder.Locks, name)
		if back := s.state == Missing && r.present[name]; !busy && !back {
			// A listing may miss a file that is renamed at that moment, under both its names. Only a repeated listing
			// counts.
			if quiet++; s.state != Missing || quiet == 3 {
				break
			}
		}
		if busy && !sleep.For(r.ctx, 3*time.Millisecond) {
			break
		}
		s = choose(s, r.scan(name, kind), true)
	}
	return s
}

// report records what is wrong with a document and what was recovered.
func (r *reader) report(d *Document, own, best scan) {
	if own.state == Missing && best.name == own.name {
		return
	}
	problem := ""
	switch own.state {
	case Missing:
		problem = "missing; a write was interrupted"
	case Empty:
		problem = emptyProblem(own.print.Size)
	case NotArray:
		problem = "no list of messages in it"
	case Unreadable:
		problem = "can not be read: " + Reason(own.err)
	case Damaged:
		problem = describe(own)
	}
	if problem == "" && d.Unstable {
		problem = "changed while it was read"
	}
	if problem == "" {
		return
	}
	recovered := wholeMessages(len(d.Spans))
	if len(d.Spans) > 0 && best.name != own.name {
		recovered += " from " + best.name
		if best.state == Damaged {
			recovered += " (" + describe(best) + ")"
		}
	}
	r.lose(own.name, problem, recovered)
}

// emptyProblem describes a file that holds no text.
func emptyProblem(size int64) string {
	if size == 0 {
		return "empty (0 bytes)"
	}
	return fmt.Sprintf("no text in its %d bytes", size)
}

// wholeMessages describes the number of messages that were recovered from a file.
func wholeMessages(n int) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "1 whole message"
	}
	return fmt.Sprintf("%d whole messages", n)
}

func describe(s scan) string {
	t := s.tail
	var parts []string
	switch t.End {
	case esjson.EndTorn:
		cut := fmt.Sprintf("cut at byte %d", t.Off)
		if t.InElem {
			cut += fmt.Sprintf(", inside the message that begins near byte %d", t.Last)
		}
		parts = append(parts, cut)
	case esjson.EndBroken:
		parts = append(parts, fmt.Sprintf("damaged at byte %d of %d", t.Off, t.Size))
	case esjson.EndAfter:
		parts = append(parts, fmt.Sprintf("something else follows the list at byte %d of %d", t.Off, t.Size))
	}
	if s.overlong.some() {
		parts = append(parts, s.overlong.String())
	}
	if t.Lead > 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d foreign bytes before the list", t.Lead))
	}
	if s.extra > 0 {
		parts = append(parts, fmt.Sprintf("%d messages follow that", s.extra))
	}
	return strings.Join(parts, "; ")
}

// legacy reads claude_messages.json. Its name does not show which list it is; its messages do.
func (r *reader) legacy() {
	if !r.present[LegacyName] {
		return
	}
	s := r.scan(LegacyName, UI)
	s.notes = nil // the file may hold the other history
	if s.state == Unreadable {
		r.unread(LegacyName, s.err)
	}
	kind, known := API, false
	for i := 0; i < len(s.spans) && i < 16 && !known; i++ {
		raw := make([]byte, s.spans[i].Len)
		if _, err := s.file.ReadAt(raw, s.spans[i].Off); err != nil {
			break
		}
		if _, ok := esjson.Get(raw, "role"); ok {
			kind, known = API, true
		} else if hasShape(raw, UI) {
			kind, known = UI, true
		}
	}
	d := r.folder.UI
	if kind == API {
		d = r.folder.API
	}
	if !known || d.State == Present || len(s.spans) < len(d.Spans) || len(s.spans) == 0 {
		if s.file != nil {
			_ = s.file.Close()
		}
		if !s.tail.Clean() && s.state != Missing && s.state != Present {
			r.lose(LegacyName, s.state.String(), "nothing")
			r.folder.spoilt = s.state == Unreadable || s.print.Size > 0
		}
		return
	}
	_ = d.close()
	d.use(s)
	if s.state == Damaged {
		r.lose(LegacyName, describe(s), wholeMessages(len(s.spans)))
	}
}

// scan is the result of reading one message file.
type scan struct {
	name     string
	file     *os.File
	print    Fingerprint
	spans    []esjson.Element
	tail     esjson.Tail
	state    State
	unstable bool
	extra    int // elements found after damage
	overlong overlong
	notes    Noter // for all spans; nil when the caller needs none or some could not be read
	err      error
}

// noteLevels is the number of levels that notes see in a message: down to its content's blocks and their members.
const noteLevels = 3

// note passes an element to the Noter. x is nil when the element's bytes are not in memory.
func (s *scan) note(e esjson.Element, x *esjson.Index) {
	if s.notes == nil {
		return
	}
	if x != nil {
		s.notes.Note(x)
		return
	}
	valid := false
	err := lookAt(s.file, e, func(raw []byte) {
		x := new(esjson.Index)
		if valid = x.Read(raw, noteLevels); valid {
			s.notes.Note(x)
		}
	})
	if err != nil || !valid {
		s.notes = nil // the file is being changed
	}
}

// take adds a message; false when the message is longer than messageRoom, or there are messagesMost.
func (s *scan) take(e esjson.Element) bool {
	switch {
	case len(s.spans) == messagesMost:
		s.overlong.more++
		return false
	case e.Len > messageRoom:
		s.overlong.count++
		s.overlong.longest = max(s.overlong.longest, e.Len)
		return false
	}
	s.spans = append(s.spans, e)
	return true
}

// messageRoom is the longest message, in bytes. Reading a message takes memory of several times its length, a model
// accepts half of this length in a whole request, and no tool can read its own list if one message is eight times as
// long. A longer message counts as damage: it is reported, the file stays as it is, and the rest of the task is read.
const messageRoom = 64 << 20

// messagesMost is the number of messages of a file that are read, because an element of two bytes takes 600 in memory. Tasks
// have some thousands, and a model's window holds some hundreds. More count as damage, as messages that are too long do.
const messagesMost = 1 << 18

// overlong describes the messages of a file that were left out because of their length, or because of their number.
type overlong struct {
	count   int
	longest int64
	more    int // beyond messagesMost
}

// some reports whether any message was left out.
func (o overlong) some() bool { return o.count+o.more > 0 }

func (o overlong) String() string {
	if o.more > 0 {
		return fmt.Sprintf("%d messages are left out: a file may have %d", o.count+o.more, messagesMost)
	}
	if o.count == 1 {
		return fmt.Sprintf("a message of %d MB is left out: one may have %d", o.longest>>20, messageRoom>>20)
	}
	return fmt.Sprintf("%d messages of up to %d MB are left out: one may have %d", o.count, o.longest>>20, messageRoom>>20)
}
