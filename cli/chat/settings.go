package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
)

// set changes what the next run has: of a new task, or of the one that the chat is about.
func (s *Session) set(of func(*api.NewTask), again func(*api.NewRun), note string) {
	s.mu.Lock()
	if s.st.Task == "" {
		of(&s.o.New)
	} else {
		again(&s.again)
	}
	working := s.st.Working
	s.mu.Unlock()
	if working {
		note += ", from the next run on"
	}
	s.tell("%s", note)
}

func (s *Session) mode(ctx context.Context, id, rest string) error {
	known := s.backend.Words(ctx, Modes, s.workspace(ctx), "")
	if rest == "" {
		now := ""
		s.locked(func() { now = s.again.Mode })
		if now == "" && id == "" {
			now = s.o.New.Mode
		} else if t, err := s.backend.Task(ctx, id); now == "" && err == nil {
			now = t.Mode
		}
		for _, w := range known {
			lead := "  "
			if w.Text == now {
				lead = "* "
			}
			s.tell("%s%s  %s", lead, w.Text, w.About)
		}
		if len(known) == 0 {
			s.tell("mode %s", now)
		}
		return nil
	}
	var names []string
	for _, w := range known {
		names = append(names, w.Text)
	}
	if len(names) > 0 && !slices.Contains(names, rest) {
		text := "there is no mode " + rest
		if near := nearest(rest, names); near != "" {
			text += "; " + near + " is one"
		}
		return errors.New(text + " (/mode lists them)")
	}
	s.set(func(n *api.NewTask) { n.Mode = rest }, func(n *api.NewRun) { n.Mode = rest }, "mode "+rest)
	s.change(func(st *state) { st.Mode = rest })
	return nil
}

func (s *Session) model(ctx context.Context, id, rest string) error {
	if rest == "" {
		now := ""
		s.locked(func() {
			if now = s.again.Model; id == "" {
				now = s.o.New.Model
			}
		})
		if now == "" && id != "" {
			t, err := s.backend.Task(ctx, id)
			if err != nil {
				return err
			}
			now = t.Model
		}
		s.tell("model %s", cmp.Or(now, "from the settings"))
		return nil
	}
	s.set(func(n *api.NewTask) { n.Model = rest }, func(n *api.NewRun) { n.Model = rest }, "model "+rest)
	return nil
}

var policies = []string{"ask", "read", "edits", "all"}

func (s *Session) approve(_ context.Context, _, rest string) error {
	if rest == "" {
		s.tell("unasked: %s; of ask, read, edits, all", cmp.Or(s.state().Policy, "as the task has it"))
		return nil
	}
	if !slices.Contains(policies, rest) {
		return usage("/approve ask, read, edits or all")
	}
	s.tell("%s", s.allow(rest))
	return nil
}

func (s *Session) limits(_ context.Context, id, rest string) error {
	var next api.Limits
	s.locked(func() {
		l := s.again.Limits
		if id == "" {
			l = s.o.New.Limits
		}
		if l != nil {
			next = *l
		}
	})
	if rest == "" {
		s.tell("%s", limitsText(next))
		return nil
	}
	for _, word := range fields(rest) {
		if err := limit(&next, word); err != nil {
			return err
		}
	}
	s.set(func(n *api.NewTask) { n.Limits = &next }, func(n *api.NewRun) { n.Limits = &next }, limitsText(next))
	return nil
}

// limit reads one limit.
func limit(l *api.Limits, word string) error {
	name, value, ok := strings.Cut(word, "=")
	wrong := fmt.Errorf("%s: want turns=20, cost=0.50, idle=10m or total=2h; 0 takes a limit away", word)
	if !ok {
		return wrong
	}
	switch name {
	case "turns":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return wrong
		}
		l.MaxTurns = &n
	case "cost":
		usd, err := money.Parse(value)
		if err != nil || usd < 0 {
			return wrong
		}
		l.MaxCost = &usd
	case "idle", "total":
		d, err := time.ParseDuration(value)
		if value != "0" && err != nil || d < 0 {
			return wrong
		}
		if name == "idle" {
			l.IdleTimeout = new(d.String())
		} else {
			l.TotalTimeout = new(d.String())
		}
	default:
		return wrong
	}
	return nil
}

func limitsText(l api.Limits) string {
	var parts []string
	if l.MaxTurns != nil {
		parts = append(parts, fmt.Sprintf("turns=%d", *l.MaxTurns))
	}
	if l.MaxCost != nil {
		parts = append(parts, "cost="+l.MaxCost.String())
	}
	if l.IdleTimeout != nil {
		parts = append(parts, "idle="+*l.IdleTimeout)
	}
	if l.TotalTimeout != nil {
		parts = append(parts, "total="+*l.TotalTimeout)
	}
	if parts == nil {
		return "limits as the task has them"
	}
	return "limits " + strings.Join(parts, " ")
}

// cycle is Shift+Tab: the next policy of approvals, for the next run. It reaches "all" only when the user named that
// before: one key too many must not allow everything.
func (s *Session) cycle() (note string) {
	st := s.state()
	list := policies
	if !st.Loose {
		list = policies[:len(policies)-1]
	}
	return s.allow(list[(slices.Index(list, st.Policy)+1)%len(list)])
}

// about describes what each policy leaves unasked.
var about = map[string]string{
	"ask":   "reading in the workspace",
	"read":  "reading everywhere",
	"edits": "reading everywhere and writing in the workspace",
	"all":   "every tool and command",
}

// allow sets the policy of the next run, and returns a line about it.
func (s *Session) allow(policy string) (note string) {
	note = "unasked: " + policy + ", " + about[policy]
	s.change(func(st *state) {
		if st.Task == "" {
			s.o.New.Approve = policy
		} else {
			s.again.Approve = policy
		}
		st.Policy = policy
		st.Loose = st.Loose || policy == "all"
		if st.Working {
			note += "; from the next run on"
		}
	})
	return note
}

// unasked is the row above the editor about the policy; "" when it is the usual one.
func (st state) unasked() string {
	if st.Policy == "" || st.Policy == policies[0] {
		return ""
	}
	return "· unasked: " + st.Policy + " (Shift+Tab changes it)"
}
