package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/view"
)

// command is what a line with a "/" may name.
type command struct {
	name, args, about string
	also              []string // other names
	needs             bool     // a task
	words             bool     // it holds words of the person's: they come back when it fails
	kind              Kind     // of its first argument
	do                func(s *Session, ctx context.Context, id, rest string) error
}

// workspace is where files, modes and prompts are looked for.
func (s *Session) workspace(ctx context.Context) string {
	id := s.Task()
	if id == "" {
		return s.o.New.Workspace
	}
	s.mu.Lock()
	dir, known := s.dirs[id]
	s.mu.Unlock()
	if known {
		return dir
	}
	t, err := s.backend.Task(ctx, id)
	if err != nil {
		return s.o.New.Workspace
	}
	s.mu.Lock()
	s.dirs[id] = t.Workspace
	s.mu.Unlock()
	return t.Workspace
}

// behind is a command of roost about the task: its words, the task, and what was typed.
func behind(words ...string) func(*Session, context.Context, string, string) error {
	return func(s *Session, ctx context.Context, id, rest string) error {
		args := append([]string{}, words...)
		at := 1
		if words[0] == "checkpoint" {
			at = 2
		}
		args = slices.Insert(args, at, id)
		return s.roost(ctx, append(args, fields(rest)...)...)
	}
}

// busy is the exit code of a command whose task another process owns, and settling is how long a run that has ended
// may still be saving its task.
const (
	busy     = 14
	settling = 5 * time.Second
)

// settled runs a command of roost. Right behind the end of a run it may have to wait.
func (s *Session) settled(ctx context.Context, args []string) Said {
	for end := time.Now().Add(settling); ; {
		said := s.backend.Command(ctx, args...)
		if said.Code != busy || s.state().Working || time.Now().After(end) {
			return said
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return said
		}
	}
}

// roost runs a command of roost and shows what it prints.
func (s *Session) roost(ctx context.Context, args ...string) error {
	said := s.settled(ctx, args)
	differs := slices.Contains(args, "diff") || slices.Contains(args, "restore")
	paint := func(text string, usual view.Style) string {
		var lines []string
		for _, l := range strings.Split(strings.TrimRight(Safe(text), "\n"), "\n") {
			how := usual
			if how == view.Plain && differs {
				how = view.DiffStyle(l)
			}
			lines = append(lines, s.style.Paint(how, l))
		}
		return strings.Join(lines, "\n")
	}
	colour := view.Dim
	if said.Code != 0 {
		colour = view.Bad
	}
	switch {
	case s.o.Result == nil && said.Whole != "" && said.Out != "":
		s.out.block(paint(said.Whole, view.Plain))
	default:
		s.give(paint(said.Out, view.Plain))
		s.out.block(paint(said.Err, colour))
	}
	if said.Code != 0 {
		return &failed{said}
	}
	return nil
}

func (s *Session) quit(context.Context, string, string) error {
	s.change(func(st *state) { st.Over = true })
	return nil
}

// nearest is the name that a mistyped one most likely means, "" when none is near.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3+1)
	for _, k := range known {
		d := config.Distance(name, k)
		if len(name) > 1 && strings.HasPrefix(k, name) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}
