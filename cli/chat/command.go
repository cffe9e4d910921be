package chat

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/roost-dev/roost/cli/config"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// helpPage is what /help has below the commands.
//
//go:embed help.txt
var helpPage string

// commands are all of them, in the order of /help. It is a function, because /help shows
// what it is itself a part of.
func commands() []command {
	return []command{
		{name: "help", args: "[COMMAND]", about: "list the commands", do: (*Session).help},
		{name: "new", about: "begin another task with the next words", do: (*Session).newTask},
		{name: "resume", args: "ID", about: "turn to another task", also: []string{"continue"}, kind: Tasks, do: (*Session).turn},
		{name: "tasks", args: "[WORDS]", about: "list tasks, newest first", also: []string{"list"}, do: (*Session).tasks},
		{name: "search", args: "WORDS", about: "find messages of all tasks", do: (*Session).search},
		{name: "show", args: "[N]", about: "the last messages with their numbers", also: []string{"history"}, needs: true,
			do: (*Session).show},
		{name: "title", args: "WORDS", about: "give the task a title", also: []string{"rename"}, needs: true, words: true,
			do: (*Session).title},
		{name: "tag", args: "[+TAG|-TAG]...", about: "give and take tags", needs: true, do: behind("tag")},
		{name: "tree", about: "the task and its subtasks", needs: true, do: behind("show", "--tree")},
		{name: "fork", args: "[REF]", about: "go on in a new task with the history up to there", needs: true, do: (*Session).fork},

		{name: "rewind", args: "[REF] [--files]", about: "take the histories back: #12, ~2 turns; the last turn alone",
			needs: true, do: (*Session).rewind},
		{name: "undo", about: "take back the last rewind, condense, restore or rename", needs: true, do: behind("undo")},
		{name: "redo", about: "do it again", needs: true, do: behind("redo")},
		{name: "edit", args: "REF WORDS", about: "put other words in a message's place, and go on from there", needs: true,
			words: true, do: (*Session).edit},
		{name: "condense", args: "[WORDS]", about: "have older history summarised, looking to WORDS",
			also: []string{"compact"}, needs: true, do: (*Session).condense},
		{name: "checkpoint", args: "[list]", about: "keep the files as they are now; list what is kept",
			also: []string{"checkpoints"}, needs: true, do: (*Session).checkpoint},
		{name: "restore", args: "[C] [--yes]", about: "put files back; without --yes it shows what it would do",
			needs: true, do: (*Session).restore},
		{name: "diff", args: "[C [C2|now]]", about: "what changed in the files", needs: true, do: behind("checkpoint", "diff")},
		{name: "files", about: "what the model knows of files", needs: true, do: behind("files")},
		{name: "export", args: "[FORM] [FILE]", about: "write the task: md, html, json, roo, archive", needs: true, do: (*Session).export},
		{name: "context", about: "what the next request is made of", needs: true, do: behind("show", "--context")},
		{name: "cost", about: "what the task used", needs: true, do: behind("show", "--usage")},
		{name: "usage", args: "[--by day|model|...]", about: "what all tasks used", do: (*Session).usage},

		{name: "mode", args: "[MODE]", about: "the mode of the next run", kind: Modes, do: (*Session).mode},
		{name: "model", args: "[MODEL]", about: "the model of the next run", kind: Models, do: (*Session).model},
		{name: "approve", args: "[ask|read|edits|all]", about: "what the next run may do unasked", kind: Policies, do: (*Session).approve},
		{name: "limits", args: "[turns=N] [cost=USD] [idle=30m] [total=2h]",
			about: "bound the next run; 0 takes a limit away", do: (*Session).limits},

		{name: "queue", args: "[N WORDS|drop N]", about: "what waits for the run; other words for it", needs: true,
			words: true, do: (*Session).queued},
		{name: "answer", args: "WORDS", about: "answer the open question: yes, no, words", needs: true, words: true, do: (*Session).reply},
		{name: "reject", args: "[WHY]", about: "refuse what the run asks for; the model gets WHY", needs: true, words: true,
			do: (*Session).reject},
		{name: "steer", args: "WORDS", about: "words for the model's next request, also while a question is open",
			needs: true, words: true, do: (*Session).steer},
		{name: "now", args: "WORDS", about: "break off what the run is at, saved, and go on with WORDS", needs: true,
			words: true, do: (*Session).interject},
		{name: "retry", about: "go on without further words", needs: true, do: (*Session).retry},
		{name: "abort", about: "stop the run, saved (Esc)", also: []string{"stop"}, needs: true, do: (*Session).abort},
		{name: "quit", about: "leave (Ctrl-D)", also: []string{"exit"}, do: (*Session).quit},
	}
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name || slices.Contains(c.also, name) {
			return c, true
		}
	}
	return command{}, false
}

// do carries out a line. A name that is none of ours goes to the engine when a prompt or a skill of the user's has
// that name. words: the line holds more than a command, and must not be lost when it fails.
func (s *Session) do(ctx context.Context, text string) (words bool, err error) {
	name, rest := split(text)
	st := s.state()
	if c, ok := find(name); ok {
		words = c.words && rest != ""
		if c.needs && st.Task == "" {
			return words, errors.New("/" + name + " needs a task, and there is none yet: type a prompt, or /resume ID")
		}
		return words, c.do(s, ctx, st.Task, rest)
	}
	if s.backend.Passes(ctx, s.workspace(ctx), st.Mode, name) {
		return true, s.prompt(ctx, text)
	}
	var known []string
	for _, c := range commands() {
		known = append(append(known, c.name), c.also...)
	}
	for _, w := range s.backend.Words(ctx, Prompts, s.workspace(ctx), "") {
		known = append(known, w.Text)
	}
	return true, &UnknownError{name, nearest(name, known)}
}

func (s *Session) help(_ context.Context, _, rest string) error {
	name := strings.TrimPrefix(rest, "/")
	if name != "" {
		c, ok := find(name)
		if !ok {
			return &UnknownError{name, ""}
		}
		text := "/" + strings.TrimSpace(c.name+" "+c.args) + ": " + c.about
		if len(c.also) > 0 {
			text += "; also /" + strings.Join(c.also, ", /")
		}
		s.out.block(text)
		return nil
	}
	var lines []string
	for _, c := range commands() {
		lines = append(lines, "  "+display.Pad("/"+strings.TrimSpace(c.name+" "+c.args), 34)+"  "+s.style.Paint(view.Dim, c.about))
	}
	lines = append(lines, "", helpPage)
	s.out.block(strings.Join(lines, "\n"))
	return nil
}

// command is what a line with a "/" may name.
type command struct {
	name, args, about string
	also              []string // other names
	needs             bool     // a task
	words             bool     // it holds words of the person's: they come back when it fails
	kind              Kind     // of its first argument
	do                func(s *Session, ctx context.Context, id, rest string) error
}

// workspace is the folder whose files, modes and prompts count.
func (s *Session) workspace(ctx context.Context) string {
	id := s.Task()
	if id == "" {
		return s.o.New.Workspace
	}
	dir, known := "", false
	s.locked(func() { dir, known = s.dirs[id] })
	if known {
		return dir
	}
	t, err := s.backend.Task(ctx, id)
	if err != nil {
		return s.o.New.Workspace
	}
	s.locked(func() { s.dirs[id] = t.Workspace })
	return t.Workspace
}

// behind is a command of roost about the task: its words, the task, and what was typed.
func behind(words ...string) func(*Session, context.Context, string, string) error {
	return func(s *Session, ctx context.Context, id, rest string) error {
		return s.roost(ctx, slices.Concat(words, []string{id}, fields(rest))...)
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

// unfinished reports whether more is to come behind what was typed: its last line ends
// in a "\", or it has begun a ``` fence and not ended it.
func unfinished(text string) bool {
	lines, fence := strings.Split(text, "\n"), false
	for _, line := range lines {
		fence = fence != fences(line)
	}
	return fence || continued(lines[len(lines)-1])
}

// fences reports whether a line begins or ends a fence.
func fences(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "```") }

// continued reports whether a line ends in a "\" that is not itself behind one.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// whole is what a person meant with what was typed: the "\" at the ends of lines that
// go on are no part of it. Inside of a fence a "\" is one.
func whole(text string) string {
	lines, fence := strings.Split(text, "\n"), false
	for i, line := range lines {
		fence = fence != fences(line)
		if !fence && i < len(lines)-1 && continued(line) {
			lines[i] = line[:len(line)-1]
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\r\n")
}

// isCommand reports whether a text is a command: a "/" in front, and no second one. A
// command has one line.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
}

// plainly returns the prompt of a text that is no command: "//" in front means "/".
func plainly(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// split takes a command apart: its name, and its arguments.
func split(text string) (name, rest string) {
	text = strings.TrimPrefix(text, "/")
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// fields takes arguments apart at blanks; quotes, single or double, keep some together.
// A quote that is not ended ends with the text.
func fields(text string) (out []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
