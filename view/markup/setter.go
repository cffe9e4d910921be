// Package markup turns items of package view into HTML that holds only text. It is the one renderer for exported pages, the
// web page, and the fragments of the server's API.
//
// All text is untrusted. Markup in a text becomes text. Links lead only to the web or to mail, and show their target. A
// picture in Markdown becomes its description. Before anything else, characters that act or hide are removed or named.
// Elements have classes and no style. The only addresses are those of such links, of pictures that were recognised by their
// bytes, and those that the caller gives.
//
// Markdown and highlighting take more than linear time for hostile text, so text that is longer or nests deeper than their
// bounds is shown unchanged.
package markup

import (
	"bytes"
	"cmp"
	"html"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/highlight"
)

// Bounds on text that is rendered as Markdown or highlighted; text beyond them is shown unchanged. Both take more than linear
// time for hostile text.
const (
	maxMarkdown  = 64 << 10
	maxMarks     = 200         // consecutive marks that can nest
	maxOpen      = 2000        // marks that each need a search for their end
	maxCells     = maxMarkdown // of tables
	maxHighlight = 16 << 10    // a block of code
	maxColoured  = 1 << 20     // all code of a page
)

// Setter turns untrusted text into HTML. It is for one page, and not safe for concurrent use.
type Setter struct {
	opt   Options
	md    goldmark.Markdown
	left  int   // bytes of code that may still be highlighted
	shown int   // bytes of pictures in the page
	place place // of the next picture
}

// Options are settings that differ between pages.
type Options struct {
	// Clean makes text safe to show: it removes or names characters that act or hide, and masks secrets.
	Clean func(string) string
	// Fold shows calls of tools, their results and additions of the program each as one line that opens.
	Fold bool
	// Most bounds each text, in bytes; a note gives the number of omitted bytes. 0 = no bound.
	Most int
	// Zone is the time zone of shown times; nil: UTC.
	Zone *time.Location
	// Picture returns the address of a large picture; nil: the page contains all pictures, up to a size.
	Picture func(number, picture int) string
	// Checkpoint returns the address of the changes since a checkpoint; nil: the notice of a checkpoint has no link,
	// and is hidden with other housekeeping.
	Checkpoint func(number int) string
}

// New returns a setter for one page.
func New(o Options) *Setter {
	t := &Setter{opt: o, left: maxColoured}
	t.opt.Zone = cmp.Or(o.Zone, time.UTC)
	// No links by reference: Markdown hides the lines that define their addresses, even if no link uses them.
	plain := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...))
	t.md = goldmark.New(
		goldmark.WithParser(plain),
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.TaskList),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{t}, 1))),
	)
	return t
}

// Plain returns text as HTML.
func (t *Setter) Plain(s string) string { return html.EscapeString(t.opt.Clean(s)) }

// Title returns the title of a task as HTML, short enough for the top of a page. It cleans the title before it cuts
// it, because half a key would not be recognised.
func (t *Setter) Title(s string) string { return html.EscapeString(Short(t.opt.Clean(s))) }

// Short returns a title that fits above a page; the first message has the whole text.
func Short(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if r := []rune(title); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return title
}

// Markdown returns a text of a user or model, rendered as Markdown.
func (t *Setter) Markdown(s string) string {
	s = t.opt.Clean(s)
	if len(s) <= maxMarkdown && utf8.ValidString(s) && !hurts(s) {
		var out bytes.Buffer
		if err := t.md.Convert([]byte(s), &out); err == nil && !cellsLost(s, out.String()) {
			return out.String()
		}
	}
	return `<pre class="text">` + html.EscapeString(s) + "</pre>"
}

// cellsLost reports whether a table lost cells: Markdown drops the cells of a row after the last column.
func cellsLost(source, page string) bool {
	if !strings.Contains(page, "<table>") {
		return false
	}
	words := func(s string) []string {
		return strings.FieldsFunc(html.UnescapeString(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	}
	shown := api.SetOf(words(page))
	for line := range strings.Lines(source) {
		if strings.Contains(line, "|") && slices.ContainsFunc(words(line), func(word string) bool { return !shown[word] }) {
			return true
		}
	}
	return false
}

// hurts reports whether Markdown would take more than linear time or memory for a text: because its lines open as many levels
// as they have characters, because many marks each need a search for their end, or because each row of a table gets the
// cells of its widest one.
func hurts(s string) bool {
	run, open, lines, bars, wide, items := 0, 0, 1, 0, 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '*', '_', '~':
			open++
		case '|':
			bars++
			wide = max(wide, bars)
		case '\n':
			lines, bars, items = lines+1, 0, 0
		case ' ', '\t':
			if i > 1 && (s[i-1] == '.' || s[i-1] == ')') && s[i-2] >= '0' && s[i-2] <= '9' { // an item of a list may begin
				items++
			}
		}
		switch s[i] {
		case '>', '[', ']', '(', ')', '!', '*', '_', '~', '`', '-', '+', '<':
			run++
		case ' ', '\t', '\n':
		default:
			run = 0
		}
		if max(run, items) > maxMarks || open > maxOpen {
			return true
		}
	}
	return lines*wide > maxCells
}

// codeClass maps kinds of code to the classes of a page.
var codeClass = map[highlight.Kind]string{
	highlight.Comment: "c",
	highlight.String:  "s",
	highlight.Number:  "m",
	highlight.Keyword: "k",
	highlight.Call:    "nf",
	highlight.Tag:     "nt",
	highlight.Hunk:    "gh",
	highlight.Added:   "gi",
	highlight.Removed: "gd",
}

// code is highlighted source code, if its language is known.
func (t *Setter) code(text, language string) string {
	code := highlight.New(language)
	if code == nil || len(text) > min(maxHighlight, t.left) {
		return html.EscapeString(text)
	}
	t.left -= len(text)
	var out strings.Builder
	for _, p := range code.Pieces(text) {
		if class := codeClass[p.Kind]; class != "" {
			out.WriteString(`<span class="` + class + `">` + html.EscapeString(p.Text) + "</span>")
		} else {
			out.WriteString(html.EscapeString(p.Text))
		}
	}
	return out.String()
}

// plainNodes renders the nodes that could load or run something: markup in a text becomes text, a picture its
// description, and links lead only to the web or to mail.
type plainNodes struct{ t *Setter }

// RegisterFuncs implements renderer.NodeRenderer.
func (p plainNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindImage, image)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindFencedCodeBlock, p.fenced)
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	segments := n.(*ast.RawHTML).Segments
	for i := range segments.Len() {
		s := segments.At(i)
		w.WriteString(html.EscapeString(string(s.Value(source)))) //nolint:errcheck // into memory
	}
	return ast.WalkSkipChildren, nil
}

func htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock)
	if entering {
		w.WriteString(`<p class="text">` + html.EscapeString(lines(block, source))) //nolint:errcheck // into memory
		return ast.WalkContinue, nil
	}
	if block.HasClosure() {
		w.WriteString(html.EscapeString(string(block.ClosureLine.Value(source)))) //nolint:errcheck // into memory
	}
	w.WriteString("</p>\n") //nolint:errcheck // into memory
	return ast.WalkContinue, nil
}

func lines(n ast.Node, source []byte) string {
	var out strings.Builder
	all := n.Lines()
	for i := range all.Len() {
		s := all.At(i)
		out.Write(s.Value(source))
	}
	return out.String()
}

func image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString(`<span class="image">[image: `) //nolint:errcheck // into memory
	} else {
		img := n.(*ast.Image)
		w.WriteString(" " + html.EscapeString(string(img.Destination)+titled(img.Title)) + "]</span>") //nolint:errcheck // into memory
	}
	return ast.WalkContinue, nil
}

func link(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to, title := string(n.(*ast.Link).Destination), titled(n.(*ast.Link).Title)
	switch {
	case !outward(to) && entering:
	case !outward(to):
		w.WriteString(" (" + html.EscapeString(to+title) + ")") //nolint:errcheck // into memory
	case entering:
		w.WriteString(anchor(to)) //nolint:errcheck // into memory
	default:
		if label := words(n, source); misleading(label, to) {
			title = " (" + to + ")" + title
		}
		w.WriteString("</a>" + html.EscapeString(title)) //nolint:errcheck // into memory
	}
	return ast.WalkContinue, nil
}

// words returns the text of a link.
func words(n ast.Node, source []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Value(source))
		} else {
			out.WriteString(words(c, source))
		}
	}
	return out.String()
}

// misleading reports whether the text of a link looks like another address than its target, which a phone does not show.
func misleading(label, to string) bool {
	bare := func(s string) string {
		s = strings.ToLower(strings.TrimSpace(s))
		for _, start := range []string{"https://", "http://", "mailto:", "www."} {
			s = strings.TrimPrefix(s, start)
		}
		return strings.TrimRight(s, "/")
	}
	name, _, _ := strings.Cut(bare(label), "/")
	dot := strings.IndexByte(name, '.')
	return dot > 0 && dot < len(name)-1 && !strings.ContainsAny(name, " \t\n") && bare(label) != bare(to)
}

// titled returns the title of a link or picture, for display after its address.
func titled(title []byte) string {
	if len(title) == 0 {
		return ""
	}
	return ` "` + string(title) + `"`
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	to, label := string(l.URL(source)), html.EscapeString(string(l.Label(source)))
	if outward(to) {
		label = anchor(to) + label + "</a>"
	}
	w.WriteString(label) //nolint:errcheck // into memory
	return ast.WalkContinue, nil
}

func (p plainNodes) fenced(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		block := n.(*ast.FencedCodeBlock)
		language := string(block.Language(source))
		if block.Info != nil { // perhaps the name of a file
			if info := strings.TrimSpace(string(block.Info.Segment.Value(source))); info != language || highlight.New(language) == nil {
				w.WriteString(`<p class="text">` + html.EscapeString(info) + "</p>\n") //nolint:errcheck // into memory
			}
		}
		//nolint:errcheck // into memory
		w.WriteString(`<pre class="code"><code>` + p.t.code(lines(block, source), language) + "</code></pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// outward reports whether a page may link to an address.
func outward(to string) bool {
	to = strings.ToLower(to)
	return strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "mailto:")
}

func anchor(to string) string {
	return `<a rel="noopener noreferrer nofollow" href="` + html.EscapeString(string(util.URLEscape([]byte(to), true))) + `">`
}
