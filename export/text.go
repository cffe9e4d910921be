package export

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/roost-dev/roost/redact"
)

// Bounds on text that is rendered as Markdown or highlighted; beyond them it is shown as it is. Both libraries take more
// than linear time for hostile text.
const (
	maxMarkdown  = 64 << 10
	maxMarks     = 200      // consecutive ones, of those that nest
	maxOpen      = 2000     // that each look for their end
	maxHighlight = 16 << 10 // a block of code
	maxColoured  = 1 << 20  // all code of a page
)

// typesetter turns untrusted text into HTML that holds only text.
type typesetter struct {
	mask   mask
	md     goldmark.Markdown
	format *chromahtml.Formatter
	left   int // bytes of code that may still be highlighted
}

func newTypesetter(by *redact.Redactor) *typesetter {
	t := &typesetter{
		mask:   mask{by: by},
		left:   maxColoured,
		format: chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true)),
	}
	// No links by reference: the lines with their addresses would not be shown, even if no link uses them.
	plain := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...))
	t.md = goldmark.New(
		goldmark.WithParser(plain),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{t}, 1))),
	)
	return t
}

// clean removes control and invisible characters before text is masked: one in a secret would hide it.
func (t *typesetter) clean(s string) string { return t.mask.text(redact.Terminal(s)) }

// plain is text as HTML.
func (t *typesetter) plain(s string) string { return html.EscapeString(t.clean(s)) }

// title is the title of a task as HTML, short enough for the top of a page. It is masked before it is cut: the redactor
// would not recognise half a key.
func (t *typesetter) title(s string) string { return html.EscapeString(short(t.clean(s))) }

// markdown is a text of a user or model, rendered as Markdown.
func (t *typesetter) markdown(s string) string {
	s = t.clean(s)
	if len(s) > maxMarkdown || !utf8.ValidString(s) || hurts(s) {
		return `<pre class="text">` + html.EscapeString(s) + "</pre>"
	}
	var out bytes.Buffer
	if err := t.md.Convert([]byte(s), &out); err != nil || cellsLost(s, out.String()) {
		return `<pre class="text">` + html.EscapeString(s) + "</pre>"
	}
	return out.String()
}

// cellsLost reports whether a table would lose cells: Markdown drops the cells of a row behind the last column.
func cellsLost(source, page string) bool {
	if !strings.Contains(page, "<table>") {
		return false
	}
	words := func(s string) []string {
		return strings.FieldsFunc(html.UnescapeString(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	}
	shown := map[string]bool{}
	for _, word := range words(page) {
		shown[word] = true
	}
	for line := range strings.Lines(source) {
		if strings.Contains(line, "|") && slices.ContainsFunc(words(line), func(word string) bool { return !shown[word] }) {
			return true
		}
	}
	return false
}

// hurts reports whether Markdown would take more than linear time for a text: lines that open as many levels as they have
// characters, and many marks that each search for their end.
func hurts(s string) bool {
	run, open := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '*', '_', '~':
			open++
		}
		switch s[i] {
		case '>', '[', ']', '(', ')', '!', '*', '_', '~', '`', '-', '+', '<':
			run++
		case ' ', '\t', '\n':
		default:
			run = 0
		}
		if run > maxMarks || open > maxOpen {
			return true
		}
	}
	return false
}

// code is highlighted source code, if its language is known.
func (t *typesetter) code(text, language string) string {
	if language == "" || len(text) > maxHighlight || len(text) > t.left {
		return html.EscapeString(text)
	}
	lexer := lexerOf(language)
	if lexer == nil {
		return html.EscapeString(text)
	}
	t.left -= len(text)
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return html.EscapeString(text)
	}
	var out strings.Builder
	if err := t.format.Format(&out, onLight(), tokens); err != nil {
		return html.EscapeString(text)
	}
	return out.String()
}

// plainNodes renders the nodes that could load or run something: markup in a text becomes text, a picture its
// description, and links lead only to the web or to mail.
type plainNodes struct{ t *typesetter }

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

// words is the text of a link.
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

// misleading reports whether the text of a link looks like another address than its target. A phone does not show the
// target.
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

// titled is the title of a link or picture, for display behind its address.
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
			if info := strings.TrimSpace(string(block.Info.Segment.Value(source))); info != language || lexerOf(language) == nil {
				w.WriteString(`<p class="text">` + html.EscapeString(info) + "</p>\n") //nolint:errcheck // into memory
			}
		}
		//nolint:errcheck // into memory
		w.WriteString(`<pre class="chroma"><code>` + p.t.code(lines(block, source), language) + "</code></pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// outward reports whether a link may be followed.
func outward(to string) bool {
	to = strings.ToLower(to)
	return strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "mailto:")
}

func anchor(to string) string {
	return `<a rel="noopener noreferrer nofollow" href="` + html.EscapeString(string(util.URLEscape([]byte(to), true))) + `">`
}
