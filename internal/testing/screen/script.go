package screen

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Script is a session in a file, one step a line; "#" begins a comment. The steps:
//
//	wait TEXT      until the text is seen ("!TEXT": until it is not)
//	watch TEXT     the same, and each picture on the way becomes a frame
//	type WORDS     letter by letter; each becomes a frame
//	press KEY ...  keys by name (see Keys), or single letters
//	shot NAME      the picture now, under this name
//	hold DURATION  how long the picture stays in a recording; nobody waits
//	size COLSxLINES
//
// Texts and words may be quoted as in Go.
type Script []Step

// Step is one line of a script.
type Step struct {
	Line      int
	Verb, Arg string
}

// Keys are the names of keys, and what a terminal sends for them.
var Keys = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "backtab": "\x1b[Z", "space": " ", "backspace": "\x7f", "delete": "\x1b[3~",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"pgup": "\x1b[5~", "pgdown": "\x1b[6~", "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B",
}

// ParseScript reads a script.
func ParseScript(text string) (Script, error) {
	var s Script
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb, arg, _ := strings.Cut(line, " ")
		arg = strings.TrimSpace(arg)
		if unquoted, err := strconv.Unquote(arg); err == nil {
			arg = unquoted
		}
		step := Step{i + 1, verb, arg}
		if err := step.check(); err != nil {
			return nil, fmt.Errorf("line %d of the script: %w", i+1, err)
		}
		s = append(s, step)
	}
	return s, nil
}

func (s Step) check() error {
	if s.Arg == "" {
		return fmt.Errorf("%s wants an argument", s.Verb)
	}
	switch s.Verb {
	case "wait", "watch", "type", "shot":
		return nil
	case "press":
		_, err := keys(s.Arg)
		return err
	case "hold":
		_, err := time.ParseDuration(s.Arg)
		return err
	case "size":
		_, err := ParseSize(s.Arg)
		return err
	}
	return fmt.Errorf("%q is no step", s.Verb)
}

// ParseSize reads a size such as 80x24.
func ParseSize(text string) (s Size, err error) {
	if n, err := fmt.Sscanf(text, "%dx%d", &s.Columns, &s.Lines); n != 2 || err != nil || s.Columns < 1 || s.Lines < 1 {
		return s, fmt.Errorf("%q is no size such as 80x24", text)
	}
	return s, nil
}

// keys are the bytes of several keys.
func keys(names string) (list []string, err error) {
	for _, name := range strings.Fields(names) {
		bytes, known := Keys[name]
		letter, isCtrl := strings.CutPrefix(name, "ctrl+")
		switch {
		case known:
		case isCtrl && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z':
			bytes = string(letter[0] - 'a' + 1)
		case len([]rune(name)) == 1:
			bytes = name
		default:
			return nil, fmt.Errorf("%q is no key", name)
		}
		list = append(list, bytes)
	}
	return list, nil
}

// Frame is a picture and how long a recording shows it.
type Frame struct {
	Picture *Picture
	For     time.Duration
}

// Session is a script that is played.
type Session struct {
	Terminal *Terminal
	// Shot is called with each shot; nil = nobody wants them.
	Shot   func(name string, p *Picture) error
	Frames []Frame
}

// The pace of a recording. It is that of the recording only: nobody waits.
const (
	perLetter = 70 * time.Millisecond
	perStep   = 400 * time.Millisecond
	perChange = 80 * time.Millisecond
	patience  = 300 * time.Millisecond // for a key that changes nothing
)

// Play starts a program and plays a script with it. It returns the frames of a recording.
func Play(ctx context.Context, cmd *exec.Cmd, o Options, script Script, shot func(name string, p *Picture) error) ([]Frame, error) {
	t, err := Start(cmd, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &Session{Terminal: t, Shot: shot}
	for _, step := range script {
		if err := s.Do(ctx, step); err != nil {
			return s.Frames, fmt.Errorf("line %d of the script: %w", step.Line, err)
		}
	}
	return s.Frames, nil
}

// Do plays one step.
func (s *Session) Do(ctx context.Context, step Step) error {
	t := s.Terminal
	switch step.Verb {
	case "wait":
		p, err := t.WaitFor(ctx, step.Arg)
		s.frame(p, perStep)
		return err
	case "watch":
		p, err := t.Wait(ctx, func(p *Picture) bool {
			without, not := strings.CutPrefix(step.Arg, "!")
			s.frame(p, perChange)
			return p.Holds(without) != not
		})
		s.frame(p, perStep)
		return err
	case "type":
		for _, r := range step.Arg {
			if err := s.press(ctx, string(r), perLetter); err != nil {
				return err
			}
		}
	case "press":
		list, err := keys(step.Arg)
		for _, key := range list {
			err = errors.Join(err, s.press(ctx, key, perStep))
		}
		return err
	case "hold":
		d, err := time.ParseDuration(step.Arg)
		s.frame(t.Picture(), d)
		return err
	case "size":
		size, err := ParseSize(step.Arg)
		return errors.Join(err, t.Resize(size))
	case "shot":
		if s.Shot != nil {
			return s.Shot(step.Arg, t.Picture())
		}
	}
	return nil
}

// press types one key and keeps the picture that it makes.
func (s *Session) press(ctx context.Context, key string, d time.Duration) error {
	before := s.Terminal.Picture().Text()
	if err := s.Terminal.Type(key); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, _ := s.Terminal.Wait(soon, func(p *Picture) bool { return p.Text() != before }) // it may change nothing
	s.frame(p, d)
	return ctx.Err()
}

// frame adds a picture, or shows the last one longer when it is the same.
func (s *Session) frame(p *Picture, d time.Duration) {
	if n := len(s.Frames); n > 0 && same(s.Frames[n-1].Picture, p) {
		s.Frames[n-1].For += d
		return
	}
	s.Frames = append(s.Frames, Frame{p, d})
}

func same(a, b *Picture) bool {
	if a.Size != b.Size || a.Cursor != b.Cursor {
		return false
	}
	for y := range a.Cells {
		for x := range a.Cells[y] {
			if a.Cells[y][x] != b.Cells[y][x] {
				return false
			}
		}
	}
	return true
}
