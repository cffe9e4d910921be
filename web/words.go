package web

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/view/markup"
)

// clean makes untrusted text safe to show. Templates pass all of it through clean, short or titleOf.
func clean(s string) string { return redact.Marked(s) }

// short returns an untrusted text that fits on a line.
func short(s string) string { return markup.Short(clean(s)) }

// titled returns a title behind a colon; "" for none.
func titled(s string) string {
	if s = short(s); s != "" {
		return ": " + s
	}
	return ""
}

// diffOf returns a difference as HTML.
func diffOf(patch string) string { return markup.New(markup.Options{Clean: clean}).Diff(patch) }

// current are the attributes of a link that leads to what the page shows: kind is the value of aria-current.
func current(here bool, kind string) templ.Attributes {
	if !here {
		return nil
	}
	return templ.Attributes{"aria-current": kind}
}

// shareOf returns how much of its model's window a task uses, such as 15%; "" if that is unknown.
func shareOf(t api.Summary) string {
	percent, ok := t.ContextShare()
	if !ok {
		return ""
	}
	return itoa(int(percent)) + "%"
}

// titleOf returns the title of a task on one line, or its id if it has no title.
func titleOf(t api.Summary) string {
	return cmp.Or(short(t.Title), clean(t.ID))
}

// refOf returns the name by which the API finds exactly this task.
func refOf(t api.Summary) string {
	if t.Source == api.OwnSource || t.Source == "" {
		return t.ID
	}
	return t.Key()
}

// TaskPath returns the address of the page of a task.
func TaskPath(t api.Summary) string { return "/tasks/" + url.PathEscape(refOf(t)) }

// baseOf returns the last part of a folder's path, of any system.
func baseOf(dir string) string {
	dir = strings.TrimRight(strings.ReplaceAll(dir, `\`, "/"), "/")
	if dir == "" {
		return ""
	}
	return redact.Marked(path.Base(dir))
}

// dollars returns an amount to the cent, and "–" for an unknown one.
func dollars(cost *money.USD) string {
	if cost == nil {
		return "–"
	}
	if *cost > 0 && cost.Cents() == 0 {
		return "<$0.01"
	}
	return "$" + cost.Cents().String()
}

// exact returns an amount to the micro-dollar, and "not known" for an unknown one.
func exact(cost *money.USD) string {
	if cost == nil {
		return "not known"
	}
	return "$" + cost.String()
}

// stamp writes a time in the zone of the server; "" for none.
func (w *Web) stamp(ms int64, layout string) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).In(w.opt.Now().Location()).Format(layout)
}

// ageOf describes how long ago a time was. For a time in the future, which a wrong clock wrote, it returns the day.
func ageOf(now time.Time, ms int64) string {
	if ms <= api.EarliestTime {
		return "–"
	}
	at := time.UnixMilli(ms)
	d := now.Sub(at)
	const day = 24 * time.Hour
	switch {
	case d < -time.Minute:
		return at.Format(time.DateOnly)
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d < 60*day:
		return fmt.Sprintf("%d d", d/day)
	case d < 365*day:
		return fmt.Sprintf("%d mo", d/(30*day))
	}
	return fmt.Sprintf("%d y", d/(365*day))
}

// hit is a message that holds the words.
type hit struct {
	api.Hit
	Link   string
	Pieces []view.Piece
}

// in reports whether a list has a hit with the same link, like that of the twin in the other history.
func (h hit) in(list []hit) bool {
	return slices.ContainsFunc(list, func(other hit) bool { return other.Link == h.Link })
}

// hitOf returns a hit with its link, and its snippet with the terms marked. find are the words that the page of the
// task searches for; "" = none.
func hitOf(h api.Hit, terms []string, find string) hit {
	number, history := h.Number, h.History
	for _, twin := range h.Also {
		if twin.History == api.UI {
			number, history = twin.Number, twin.History
		}
	}
	return hit{h, messageLink(TaskPath(h.Task), history, number, find), view.Marked(redact.Marked(h.Snippet), terms)}
}

// messageLink leads to a message of a task, on a page that searches for the words find; "" = none.
func messageLink(task, history string, number int, find string) string {
	q := url.Values{"at": {itoa(number)}}
	if find != "" {
		q.Set("find", find)
	}
	if history == api.API {
		q.Set("view", "api")
	}
	return task + "?" + q.Encode() + "#" + history + "-" + itoa(number)
}

func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// query returns an address with the values of a query, given as pairs of name and value. It leaves out empty values.
func query(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return address(path, q)
}

func itoa(n int) string { return strconv.Itoa(n) }
