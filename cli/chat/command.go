package chat

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"unicode"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// keysPage has all keys of a chat: `?`, /help, roost help keys and the documentation show it.
//
//go:embed keys.txt
var keysPage string

// Keys is the table of keys.
func Keys() string { return keysPage }

// commandsPage has a line for each command, in the order of /help; its parts are separated by tabs. They are its names,
// its arguments, what it is for, its marks, and the command of roost that carries it out: ID is the task, WORDS what
// was typed, ARGS the same taken apart. Marks: it needs a task, wants its arguments, or has words of the person's, which
// come back when it fails; or the kind of its first argument.
//
//go:embed commands.txt
var commandsPage string

// act carries a command out: about a task, with what was typed behind the name.
type act = func(s *Session, ctx context.Context, id, rest string) error

// commands are all of them. It is a function, because /help shows what it is itself a part of.
func commands() (all []command) {
	acts := map[string]act{
		"help": (*Session).help, "new": (*Session).newTask, "resume": (*Session).turn, "show": (*Session).show,
		"fork": (*Session).fork, "rewind": (*Session).rewind, "edit": (*Session).edit, "condense": (*Session).condense,
		"checkpoint": (*Session).checkpoint, "restore": (*Session).restore, "export": (*Session).export,
		"mode": (*Session).mode, "model": (*Session).model, "approve": (*Session).approve, "limits": (*Session).limits,
		"image": (*Session).image, "status": (*Session).standing, "clear": (*Session).clear, "init": (*Session).init,
		"effort": (*Session).effort, "provider": (*Session).provider, "profile": (*Session).profile,
		"queue": (*Session).queued, "answer": (*Session).reply, "reject": (*Session).reject, "steer": (*Session).steer,
		"now": (*Session).interject, "retry": (*Session).retry, "abort": (*Session).abort, "quit": (*Session).quit,
	}
	for line := range strings.Lines(commandsPage) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		names := strings.Split(parts[0], ",")
		c := command{name: names[0], also: names[1:], args: parts[1], about: parts[2], do: acts[names[0]]}
		for mark := range strings.FieldsSeq(parts[3]) {
			switch mark {
			case "needs":
				c.needs = true
			case "wants":
				c.wants = true
			case "words":
				c.words = true
			default:
				c.kind = Kind(mark)
			}
		}
		if c.do == nil {
			c.do = forwards(parts[4])
		}
		all = append(all, c)
	}
	return all
}

// forwards is a command of roost; see commandsPage.
func forwards(line string) act {
	return func(s *Session, ctx context.Context, id, rest string) error {
		var args []string
		for word := range strings.FieldsSeq(line) {
			switch word {
			case "ID":
				args = append(args, id)
			case "WORDS":
				args = append(args, rest)
			case "DIR":
				args = append(args, s.workspace(ctx))
			case "ARGS":
				args = append(args, fields(rest)...)
			default:
				args = append(args, word)
			}
		}
		return s.roost(ctx, args...)
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
		if c.wants && rest == "" {
			return words, usage("/" + name + " " + c.args)
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
	lines = append(lines, "", keysPage)
	s.out.block(strings.Join(lines, "\n"))
	return nil
}

// command is what a line with a "/" may name.
type command struct {
	name, args, about   string
	also                []string // other names
	needs, wants, words bool     // see commandsPage, as for the kind
	kind                Kind
	do                  act
}

func (s *Session) quit(context.Context, string, string) error {
	s.change(func(st *state) { st.Over = true })
	return nil
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
