package chat

import (
	"context"
	"slices"
	"strings"
	"unicode"
)

// wish is what Tab is to complete: the runes from a place up to the cursor.
type wish struct {
	kind  Kind
	begun string // what is typed of it, without its mark
	lead  string // the mark that goes before a word of it
	from  int
}

// commandWords is the kind of the word that names a command.
const commandWords Kind = "command"

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
		if known && c.kind != "" && strings.TrimSpace(string(text[:from])) == "/"+name {
			return wish{c.kind, word, "", from}, true
		}
		if known {
			return w, false
		}
	}
	switch {
	case strings.HasPrefix(word, "@"):
		return wish{Files, strings.ReplaceAll(strings.TrimPrefix(word[1:], "/"), `\ `, " "), "@/", from}, true
	case strings.HasPrefix(word, "#"):
		return wish{Tasks, word[1:], "", from}, true
	}
	return w, false
}

// words are the candidates for completing what was typed, each in the form in which it is inserted.
func (s *Session) words(ctx context.Context, w wish) []Word {
	var list []Word
	if w.kind == commandWords {
		for _, c := range commands() {
			list = append(list, Word{c.name, c.about})
		}
		for _, p := range s.backend.Words(ctx, Prompts, s.workspace(ctx), w.begun) {
			if _, own := find(p.Text); !own {
				list = append(list, p)
			}
		}
	} else {
		dir := ""
		if w.kind != Tasks {
			dir = s.workspace(ctx)
		}
		list = s.backend.Words(ctx, w.kind, dir, w.begun)
	}
	var out []Word
	for _, word := range list {
		if !strings.HasPrefix(word.Text, w.begun) || Safe(word.Text) != word.Text || strings.Contains(word.Text, "\n") {
			continue // a name that cannot be shown cannot be chosen
		}
		if w.kind == Files {
			word.Text = strings.ReplaceAll(word.Text, " ", `\ `)
		}
		word.Text = w.lead + word.Text
		out = append(out, word)
	}
	return out
}

// choice is the list that Tab goes through.
type choice struct {
	list []Word
	at   int // the one that is in the text, -1 = none yet
	from int
}

// offer puts in what is certain, and offers the rest.
func (e *editor) offer(w wish, list []Word) choice {
	if len(list) == 0 {
		return choice{}
	}
	if len(list) == 1 {
		text := list[0].Text
		if !strings.HasSuffix(text, "/") {
			text += " "
		}
		e.put(w.from, text)
		return choice{}
	}
	common := list[0].Text
	for _, word := range list[1:] {
		for !strings.HasPrefix(word.Text, common) {
			r := []rune(common)
			common = string(r[:len(r)-1])
		}
	}
	if n := len([]rune(common)); n > e.at-w.from {
		e.put(w.from, common)
	}
	return choice{list: list, at: -1, from: w.from}
}

// put replaces the text from an index up to the cursor.
func (e *editor) put(from int, text string) {
	e.text = slices.Delete(e.text, from, e.at)
	e.at = from
	e.insert(text)
}

// next puts the next word of a choice in, or the one before.
func (e *editor) next(c *choice, by int) {
	n := len(c.list)
	switch {
	case c.at < 0 && by < 0:
		c.at = n - 1
	default:
		c.at = (c.at + by + n) % n
	}
	e.put(c.from, c.list[c.at].Text)
}
