package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// windowBytes bounds the messages in one answer, in bytes; one message may have more.
const windowBytes = 4 << 20

// window is a part of a history. Items are the stored bytes.
type window struct {
	Task    string            `json:"task_id"`
	History string            `json:"history"` // ui, api
	Items   []json.RawMessage `json:"items"`
	Numbers []int             `json:"numbers"`     // of the items, as show prints them
	Total   int               `json:"total"`       // messages of the history
	Before  *int              `json:"next_before"` // the parameter before for earlier messages; null at the start
	After   *int              `json:"next_after"`  // the parameter after for later messages; null at the end
	Notes   []string          `json:"notes"`       // what differs from the stored history, and what is unreadable
	// what the task recorded about files, each behind one of these messages; none for the model's history
	Notices []api.Notice `json:"notices"`
}

// bytes is the window as JSON. The items are copied: encoding them again would change their bytes.
func (w window) bytes() raw {
	var items []byte
	for i, item := range w.Items {
		if i > 0 {
			items = append(items, ',')
		}
		items = append(items, item...)
	}
	var o esjson.Object
	o.String("task_id", w.Task)
	o.String("history", w.History)
	o.Raw("items", slices.Concat([]byte("["), items, []byte("]")))
	put := func(key string, v any) {
		text, _ := json.Marshal(v) // numbers and texts
		o.Raw(key, text)
	}
	put("numbers", append([]int{}, w.Numbers...))
	put("total", w.Total)
	put("next_before", w.Before)
	put("next_after", w.After)
	put("notes", append([]string{}, w.Notes...))
	put("notices", append([]api.Notice{}, w.Notices...))
	return append(raw(o.Bytes()), '\n')
}

// span is the requested messages.
type span struct {
	before, after int // 0: not given
	limit         int
}

func (a *asked) span() (span, error) {
	out := span{limit: a.number["limit"]}
	for name, to := range map[string]*int{"before": &out.before, "after": &out.after} {
		text, given := a.text[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if err != nil || n < 0 || name == "before" && n == 0 {
			p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				name+": want a message's number such as 12")
			p.Errors = []api.Wrong{{Parameter: name, Detail: "want a message's number such as 12"}}
			return out, p
		}
		if *to = n; name == "after" {
			*to = n + 1 // the first one
		}
	}
	return out, nil
}

// places are the indexes of a span in a history of n messages, in reading order: from the requested end.
func (s span) places(n int) (list []int, forward bool) {
	from, to := 0, n
	if s.before > 0 {
		to = min(n, s.before-1)
	}
	if forward = s.after > 0; forward {
		from = min(s.after-1, to)
		to = min(to, from+s.limit)
	} else {
		from = max(0, to-s.limit)
	}
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	if !forward {
		slices.Reverse(list)
	}
	return list, forward
}

func (s *Server) messages(a *asked) (any, error) { return s.windowOf(a, task.UI) }

func (s *Server) history(a *asked) (any, error) { return s.windowOf(a, task.API) }

func (s *Server) windowOf(a *asked, h task.History) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	return s.read(a, func(v *store.View) (any, error) {
		w := window{Task: v.Ref.ID, History: string(h)}
		var made []json.RawMessage
		var why string
		switch {
		case a.text["view"] == "effective":
			made, w.Notes, err = report.Effective(v)
			if made == nil {
				made = []json.RawMessage{}
			}
		default:
			if made, why, err = report.StandIn(v, h); why != "" {
				w.Notes = []string{why}
			}
		}
		if err != nil {
			return nil, err
		}
		if made != nil || why != "" {
			w.fill(span, len(made), func(i int) (json.RawMessage, error) { return made[i], nil })
			return w.bytes(), nil
		}
		list := v.State.UI()
		if h == task.API {
			list = v.State.API()
		}
		w.fill(span, len(list), func(i int) (json.RawMessage, error) {
			raws, err := v.State.Raws(list[i : i+1])
			if err != nil {
				return nil, err
			}
			return raws[0], nil
		})
		if h == task.UI {
			w.Notices = report.NoticesOf(v.State, w.Numbers)
		}
		return w.bytes(), nil
	})
}

// fill reads the messages of a span, as many as fit. It leaves out an unreadable one with a note: the rest of a damaged
// task stays visible.
func (w *window) fill(s span, n int, read func(int) (json.RawMessage, error)) {
	w.Total = n
	places, forward := s.places(n)
	size, low, high := 0, n, 0
	if len(places) == 0 {
		if low = 0; s.after > 0 {
			low = min(s.after-1, n)
		} else if s.before > 0 {
			low = min(s.before-1, n)
		}
		high = low
	}
	for _, i := range places {
		item, err := read(i)
		switch {
		case err != nil:
			w.Notes = append(w.Notes, "message "+strconv.Itoa(i+1)+" cannot be read: "+err.Error())
		case size > 0 && size+len(item) > windowBytes:
			i = -1
		default:
			size += len(item) + 1
			w.Items, w.Numbers = append(w.Items, item), append(w.Numbers, i+1)
		}
		if i < 0 {
			break
		}
		low, high = min(low, i), max(high, i+1)
	}
	if !forward {
		slices.Reverse(w.Items)
		slices.Reverse(w.Numbers)
	}
	if low > 0 {
		before := low + 1
		w.Before = &before
	}
	if high < n {
		w.After = &high
	}
}
