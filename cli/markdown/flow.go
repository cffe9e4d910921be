package markdown

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/theme"
)

// look is the appearance of a piece of text.
type look struct {
	role theme.Role
	attr theme.Attr
	url  string // the address that it leads to, made safe; "" = none
	id   int    // of the link: a terminal joins its parts on several lines by it
}

type span struct {
	look
	text string
}

// flow breaks words into lines. It writes a word when the word's end is known, so that a line only ever grows.
type flow struct {
	theme theme.Theme
	width int      // columns of a line, with its lead
	out   []string // finished lines

	line  strings.Builder // the unfinished one
	begun bool            // it holds a word
	col   int
	last  look // of the last word in it

	lead, next string // the beginnings of this line and of the following ones
	word       []span // the last word, which may continue
	length     int    // of the word, in columns
	wide       bool   // the word ends with a wide character, after which a line may break
	space      bool   // a blank comes before the word
}

// put adds text to the last word; blanks in it do not end the word. The text must consist of whole characters.
func (f *flow) put(l look, text string) {
	for text != "" {
		cluster, width := ansi.FirstGraphemeCluster(text, ansi.WcWidth)
		text = text[len(cluster):]
		if len(f.word) > 0 && (f.wide || width > 1) && !strings.Contains(noStart, cluster) || f.length > f.width {
			f.flush()
		}
		f.length += width
		f.wide = width > 1 || f.wide && strings.Contains(noStart, cluster)
		if n := len(f.word); n > 0 && f.word[n-1].look == l {
			f.word[n-1].text += cluster
		} else {
			f.word = append(f.word, span{l, cluster})
		}
	}
}

// noStart are characters before which a line does not break between wide characters.
const noStart = "、。，．・：；？！」』）】〕〉》”’…ー々,.:;?!)]}"

// blank ends the word.
func (f *flow) blank() {
	f.flush()
	f.space = f.begun
}

// flush writes the word, on a new line if this one has no room for it.
func (f *flow) flush() {
	if len(f.word) == 0 {
		return
	}
	width, lead := 0, "" // the width is that of its pieces
	for _, s := range f.word {
		width += ansi.StringWidthWc(s.text)
	}
	switch {
	case f.begun && f.space && f.col+1+width > f.width, f.begun && !f.space && f.col+width > f.width:
		f.newline()
	case f.begun && f.space:
		if f.col++; f.word[0].look == f.last { // the blank has the look of both words, such as an underline
			lead = " "
		} else {
			f.line.WriteByte(' ')
		}
	}
	f.space = false
	for _, s := range f.word {
		f.write(s, lead, "")
		lead = ""
	}
	f.word, f.length, f.wide = f.word[:0], 0, false
}

// write adds a piece to the line after lead. It breaks the piece only if it is longer than a line, and begins the rows in
// which the piece continues with mark.
func (f *flow) write(s span, lead, mark string) {
	f.start()
	begin, from := ansi.StringWidthWc(f.lead), 0
	for at := 0; at < len(s.text); {
		cluster, width := character(s.text[at:], max(f.width-begin-ansi.StringWidthWc(mark), 1))
		if f.col+width > f.width && f.col > begin {
			f.line.WriteString(f.paint(s.look, lead+s.text[from:at]))
			f.newline()
			f.start()
			f.line.WriteString(f.paint(look{role: theme.Dim}, mark))
			f.col += ansi.StringWidthWc(mark)
			from, lead = at, ""
		}
		f.col += width
		at += len(cluster)
	}
	f.line.WriteString(f.paint(s.look, lead+s.text[from:]))
	f.last = s.look
}

// character returns the first character of a text, and its columns; of one that is wider than a line, only a part.
func character(text string, line int) (string, int) {
	cluster, width := ansi.FirstGraphemeCluster(text, ansi.WcWidth)
	if width > line {
		_, n := utf8.DecodeRuneInString(text)
		return text[:n], ansi.StringWidthWc(text[:n])
	}
	return cluster, width
}

// start begins a line.
func (f *flow) start() {
	if !f.begun {
		f.line.WriteString(f.lead)
		f.begun, f.col = true, ansi.StringWidthWc(f.lead)
	}
}

// newline ends the line.
func (f *flow) newline() {
	f.out = append(f.out, f.line.String())
	f.line.Reset()
	f.begun, f.col, f.space, f.last = false, 0, false, look{}
	f.lead = f.next
}

// whole writes a line that is already painted and has its lead.
func (f *flow) whole(line string) {
	f.out = append(f.out, line)
	f.lead = f.next
}

// hard writes a line break of the text.
func (f *flow) hard() {
	f.flush()
	f.start()
	f.newline()
}

// end ends the paragraph. A paragraph without words still shows the beginning of its line.
func (f *flow) end() {
	f.flush()
	if !f.begun && f.lead != f.next {
		f.out = append(f.out, strings.TrimRight(f.lead, " "))
		f.lead = f.next
	}
	if f.begun {
		f.newline()
	}
}

// paint writes a piece of a line for the terminal.
func (f *flow) paint(l look, text string) string {
	if text == "" {
		return ""
	}
	text = f.theme.With(l.role, l.attr, text)
	if l.url != "" {
		text = ansi.SetHyperlink(l.url, "id="+strconv.Itoa(l.id)) + text + ansi.ResetHyperlink()
	}
	return text
}
