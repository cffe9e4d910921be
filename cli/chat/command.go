package chat

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// keysPage has all keys of a chat: `?`, /help, roost help keys and the documentation show it.
//
//go:embed keys.txt
var keysPage string

// Keys returns the table of keys.
func Keys() string { return keysPage }

// commandsPage has a line for each command, in the order of /help. Tabs separate its parts: the names, the arguments,
// the description, the marks, and the command of roost that carries it out. In the latter, ID is the task, WORDS the
// typed arguments as one word, ARGS the same split into words, DIR the workspace. Marks: "needs" a task; "wants" its
// arguments; stands "alone", and would
// lose words after it; has "words" of the user, which come back when the command fails; or the kind of its first argument.
//
//go:embed commands.txt
var commandsPage string

// act carries a command out, for a task, with the arguments that were typed after its name.
type act = func(s *Session, ctx context.Context, id, rest string) error

// commands returns all commands. It is a function, because /help, which is one of them, lists them.
func commands() (all []command) {
	acts := map[string]act{
		"help": (*Session).help, "new": (*Session).newTask, "resume": (*Session).switchTask, "show": (*Session).show,
		"fork": (*Session).fork, "rewind": (*Session).rewind, "edit": (*Session).edit, "condense": (*Session).condense,
		"checkpoint": (*Session).checkpoint, "restore": (*Session).restore, "export": (*Session).export,
		"mode": (*Session).mode, "model": (*Session).model, "approve": (*Session).approve, "limits": (*Session).limits,
		"image": (*Session).image, "status": (*Session).status, "clear": (*Session).clear, "init": (*Session).init,
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
			case "alone":
				c.alone = true
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

// forwards returns the act that runs a command of roost; see commandsPage.
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

// do carries out a command. A name that the chat does not know goes to the engine when a prompt or a skill has that
// name. words: the line holds words of the user, which must not be lost when the command fails.
func (s *Session) do(ctx context.Context, text string) (words bool, err error) {
	name, rest := split(text)
	st := s.state()
	if c, ok := find(name); ok {
		words = c.words && rest != ""
		if c.needs && st.Task == "" {
			return words, errors.New("/" + name + " needs a task, and there is none yet: type a prompt, or /resume ID")
		}
		if c.alone && rest != "" { // they would be lost
			return words, errors.New("/" + name + " takes no words after it")
		}
		if c.wants && rest == "" {
			return words, usage("/" + name + " " + c.args)
		}
		return words, c.do(s, ctx, st.Task, rest)
	}
	if s.backend.Passes(ctx, s.workspace(ctx), st.Facts.Mode, name) {
		return true, s.prompt(ctx, text)
	}
	var known []string
	for _, c := range commands() {
		known = append(append(known, c.name), c.also...)
	}
	known = append(known, texts(s.backend.Words(ctx, Prompts, s.workspace(ctx), ""))...)
	return true, &UnknownError{name, api.Nearest(name, known)}
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
	lines := api.Each(commands(), func(c command) string {
		return "  " + display.Pad("/"+strings.TrimSpace(c.name+" "+c.args), 34) + "  " + s.style.Paint(view.Dim, c.about)
	})
	s.out.block(strings.Join(append(lines, "", keysPage), "\n"))
	return nil
}

// command is one command of the chat; see commandsPage.
type command struct {
	name, args, about   string
	also                []string // other names
	needs, wants, words bool
	alone               bool
	kind                Kind
	do                  act
}

func (s *Session) quit(context.Context, string, string) error {
	s.change(func(st *state) { st.Over = true })
	return nil
}

// unfinished reports whether a text continues on the next line: its last line ends in a "\", or a ``` fence is open.
func unfinished(text string) bool {
	lines, fence := strings.Split(text, "\n"), false
	for _, line := range lines {
		fence = fence != fences(line)
	}
	return fence || continued(lines[len(lines)-1])
}

// fences reports whether a line begins or ends a fence.
func fences(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "```") }

// continued reports whether a line ends in a "\" that no other "\" escapes.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// whole returns the text that the user meant, without the "\" at the ends of continued lines. Inside a fence a "\"
// stays.
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

// isCommand reports whether a text is a command: it begins with one "/".
func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
}

// plainly returns the prompt for a text that is not a command: a leading "//" stands for "/".
func plainly(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// split separates the name of a command from its arguments.
func split(text string) (name, rest string) {
	text = strings.TrimPrefix(text, "/")
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
