package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/mention/complete"
	"github.com/roost-dev/roost/view"
)

// wish is the part of the text that a pop-up completes: the runes from a place up to the cursor.
type wish struct {
	kind  Kind
	begun string // what the user typed, without the mark
	lead  string // the mark before each inserted word
	from  int
}

// commandWords is the kind of a word that names a command: one of the chat's own, or a prompt.
const commandWords Kind = "name"

// wanted returns what the text before the cursor asks to complete; ok is false when nothing can be completed.
func wanted(text []rune, at int) (w wish, ok bool) {
	head := string(text[:at])
	if isCommand(head) && !strings.ContainsFunc(head, unicode.IsSpace) {
		return wish{commandWords, head[1:], "/", 0}, true
	}
	from := at
	for from > 0 && (!unicode.IsSpace(text[from-1]) || from > 1 && text[from-2] == '\\') {
		from--
	}
	word := string(text[from:at])
	if isCommand(head) {
		name, _ := split(head)
		c, known := find(name)
		if known && c.kind != "" && !strings.HasPrefix(word, "#") && strings.TrimSpace(string(text[:from])) == "/"+name {
			return wish{c.kind, word, "", from}, true
		}
	}
	switch {
	case strings.HasPrefix(word, "@"):
		return wish{Files, strings.ReplaceAll(strings.TrimPrefix(word[1:], "/"), `\ `, " "), "@/", from}, true
	case strings.HasPrefix(word, "#"):
		return wish{Refs, word[1:], "", from}, true
	}
	return w, false
}

// words returns the candidates for a wish, the best first, each in the form in which it is inserted.
func (s *Session) words(ctx context.Context, w wish) (list []Word) {
	switch id := s.Task(); w.kind {
	case commandWords:
		list = api.Each(commands(), func(c command) Word { return Word{Text: c.name, About: c.about} })
		for _, p := range s.backend.Words(ctx, Prompts, s.workspace(ctx), w.begun) {
			if _, own := find(p.Text); !own {
				list = append(list, p)
			}
		}
	case Refs:
		if id != "" {
			list = s.backend.Words(ctx, Messages, id, w.begun)
		}
		list = append(list, s.backend.Words(ctx, Tasks, "", w.begun)...)
	case Tasks:
		list = s.backend.Words(ctx, Tasks, "", w.begun)
	default:
		list = s.backend.Words(ctx, w.kind, s.workspace(ctx), w.begun)
	}
	out := complete.Rank(list, w.begun, w.kind == Tasks || w.kind == Refs)
	for i := range out {
		if w.kind == Files {
			out[i].Text = strings.ReplaceAll(out[i].Text, " ", `\ `)
		}
		out[i].Text = w.lead + out[i].Text
	}
	return out
}

// choice is the list of a pop-up.
type choice struct {
	list []Word
	at   int // the word that the arrows chose, -1 = none yet
	from int
}

// open returns the pop-up for the found words; it has no words when the user has already typed the only one.
func (e *editor) open(w wish, list []Word) choice {
	if len(list) == 0 || len(list) == 1 && list[0].Text == string(e.text[min(w.from, e.at):e.at]) {
		return choice{}
	}
	return choice{list: list, at: -1, from: w.from}
}

// move chooses the next word of a pop-up, or the one before.
func (c *choice) move(by int) {
	n := len(c.list)
	if c.at < 0 && by < 0 {
		c.at = 0 // the word before the first is the last
	}
	c.at = (c.at + by + n) % n
}

// take inserts the chosen word, or else the first one, with a blank after it unless the word is a folder.
func (e *editor) take(c choice) {
	text := c.list[max(c.at, 0)].Text
	if !strings.HasSuffix(text, "/") {
		text += " "
	}
	e.text = slices.Delete(e.text, c.from, e.at)
	e.at = c.from
	e.insert(text)
}

// rows returns the rows of a pop-up.
func (c choice) rows(style display.Style, width int) (out []row) {
	if len(c.list) == 0 {
		return nil
	}
	from := max(min(c.at-choiceRows/2, len(c.list)-choiceRows), 0)
	shown := c.list[from:min(from+choiceRows, len(c.list))]
	wide := 0
	for _, w := range shown {
		wide = min(max(wide, display.Columns(w.Text)), 40)
	}
	for n, w := range shown {
		i, how, lead := from+n, view.Dim, "    "
		if i == c.at {
			how, lead = view.Head, "  > "
		}
		text := lead + display.Pad(w.Text, wide) + "  " + w.About
		if n == choiceRows-1 && i < len(c.list)-1 {
			text = fmt.Sprintf("    … %d more", len(c.list)-i)
		}
		out = append(out, cut(style, how, text, width))
	}
	return out
}
