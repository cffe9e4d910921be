package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
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
	mask mask
	md   goldmark.Markdown
	left int // bytes of code that may still be highlighted
}

func newTypesetter(by *redact.Redactor) *typesetter {
	t := &typesetter{mask: mask{by: by}, left: maxColoured}
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
	if len(s) <= maxMarkdown && utf8.ValidString(s) && !hurts(s) {
		var out bytes.Buffer
		if err := t.md.Convert([]byte(s), &out); err == nil && !cellsLost(s, out.String()) {
			return out.String()
		}
	}
	return `<pre class="text">` + html.EscapeString(s) + "</pre>"
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
	lexer := lexerOf(language)
	if lexer == nil || len(text) > min(maxHighlight, t.left) {
		return html.EscapeString(text)
	}
	t.left -= len(text)
	var out strings.Builder
	done := 0
	for _, at := range lexer.FindAllStringSubmatchIndex(text, -1) {
		from, to, class := at[0], at[1], ""
		for i, name := range lexer.SubexpNames() {
			if at[2*i] >= 0 {
				class = name // of the group that matched; the first one is the whole
			}
		}
		switch {
		case class != "word":
		case strings.Contains(keywords, " "+text[from:to]+" "):
			class = "k"
		case strings.HasPrefix(text[to:], "("):
			class = "nf"
		default:
			continue
		}
		out.WriteString(html.EscapeString(text[done:from]) + `<span class="` + class + `">` + html.EscapeString(text[from:to]) + "</span>")
		done = to
	}
	return out.String() + html.EscapeString(text[done:])
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
		w.WriteString(`<pre class="code"><code>` + p.t.code(lines(block, source), language) + "</code></pre>\n")
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

// mask masks text and JSON, and counts the secrets.
type mask struct {
	by    *redact.Redactor
	count int
}

func (m *mask) text(s string) string {
	if m.by != nil {
		masked, n := m.by.String(s)
		m.count += n
		return masked
	}
	return s
}

// nesting bounds how deep JSON in strings of JSON is parsed: the text of a row is JSON, and may hold a tool's input,
// which is JSON again.
const nesting = 4

// json masks the strings and names of a JSON text. It decodes them first, because an escape would hide the line breaks
// of a private key. A string without a secret keeps its bytes, and so does everything between strings. raw must be
// valid.
func (m *mask) json(raw []byte) []byte {
	if m.by == nil {
		return raw
	}
	return m.strings(raw, nesting)
}

func (m *mask) strings(raw []byte, depth int) []byte {
	var out []byte
	done := 0
	for at := bytes.IndexByte(raw, '"'); at >= 0; {
		end := esjson.StringEnd(raw, at)
		if to, changed := m.literal(raw[at:end], depth); changed {
			out = append(append(out, raw[done:at]...), to...)
			done = end
		}
		next := bytes.IndexByte(raw[end:], '"')
		if next < 0 {
			break
		}
		at = end + next
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

func (m *mask) literal(raw []byte, depth int) ([]byte, bool) {
	s, err := esjson.Unquote(raw)
	if err != nil {
		return nil, false
	}
	masked, before := s, m.count
	inner := []byte(s)
	if typ := esjson.TypeOf(inner); depth > 0 && (typ == esjson.TypeObject || typ == esjson.TypeArray) && esjson.Valid(inner) {
		masked = string(m.strings(inner, depth-1))
	}
	masked = m.text(masked)
	if m.count == before {
		return nil, false
	}
	return esjson.Quote(nil, masked), true
}

// Element is one message of a history to show. Message is nil when the bytes belong to no stored message: what would be
// sent is built for the request.
type Element struct {
	Number  int // from 1
	Raw     json.RawMessage
	Message *task.Message
}

// LinesOptions are how messages are shown.
type LinesOptions struct {
	API       bool // the history that the model sees
	Effective bool // what would be sent
	Whole     bool // reasoning unfolded, output not cut
}

// bodyLines bounds the lines of each tool output.
const bodyLines = 12

// Lines renders messages of a task as lines, with the results of calls below the rows that they answer. A terminal adds
// colours and wraps.
type Lines struct {
	options LinesOptions
	state   *task.State
	item    func([]byte, int) view.Item
	results map[uint64]*task.Call
	answers func([]Element) map[int]view.Item // of rows of another tool
	notices map[int][]view.Notice             // by the number of the message before them
}

// NewLines renders messages of a task, which must stay open.
func NewLines(v *store.View, o LinesOptions) *Lines {
	l := &Lines{options: o, state: v.State, item: view.UI, results: resultsByRow(v.State), answers: answersTo(v)}
	if o.API || o.Effective {
		l.item = view.API
	} else {
		l.notices = view.ByRow(view.Notices(v.State))
	}
	return l
}

// Together is how many messages Of takes at most: it looks for their answers among them. Each may hold megabytes.
const Together = 16

// Of yields the lines of consecutive messages, one message at a time, as each may hold megabytes.
func (l *Lines) Of(batch []Element) iter.Seq2[int, []view.Line] {
	return func(yield func(int, []view.Line) bool) {
		var answers map[int]view.Item
		if l.notices != nil { // the history that the user sees
			answers = l.answers(batch)
		}
		for i, one := range batch {
			answer, ok := answers[i]
			if !yield(i, l.one(one, answer, ok)) {
				return
			}
		}
	}
}

func (l *Lines) one(one Element, answer view.Item, answered bool) []view.Line {
	it := l.item(one.Raw, one.Number)
	if l.options.API {
		nameResults(it.Parts, l.state)
	}
	lines := view.Fold(it, l.room)
	switch {
	case one.Message != nil && !l.options.API && l.results[one.Message.ID] != nil:
		lines = append(lines, l.result(l.results[one.Message.ID], one.Number)...)
	case answered:
		if !l.options.Whole {
			answer = view.Spoken(answer)
		}
		lines = append(lines, below(view.Fold(answer, l.room))...)
	}
	if one.Message != nil {
		for _, n := range l.notices[one.Number] {
			lines = append(lines, view.Fold(n.Item(), l.room)...)
		}
	}
	return lines
}

// room bounds the lines of a body: 0 = all of them, -1 = folded.
func (l *Lines) room(c view.Class) int {
	if l.options.Whole {
		return 0
	}
	switch c {
	case view.Reasoning, view.Appended:
		return -1
	case view.User, view.Model, view.Result, view.Question, view.Failure:
		return 0
	}
	return bodyLines
}

// outputBehind reports whether a row behind that of a command shows its output.
func (l *Lines) outputBehind(number int) bool {
	for _, m := range l.state.UI()[number:] {
		switch m.Kind() {
		case "say:command_output", "ask:command_output":
			return true
		case "say:api_req_started":
			return false
		}
	}
	return false
}

// result are the lines of what a call gave; without Whole none of them repeats another row, or is for the model.
func (l *Lines) result(c *task.Call, number int) []view.Line {
	result, err := c.Result()
	if err != nil {
		return []view.Line{{Style: view.Bad, Text: "  its result cannot be read: " + err.Error()}}
	}
	it := view.ToolResult(result)
	it.Title = c.Finished.Outcome
	if c.Finished.Outcome != "ok" {
		it.Class = view.Failure
	}
	if c.Finished.Exit != nil {
		it.Title += fmt.Sprintf(", exit %d", *c.Finished.Exit)
	}
	if !l.options.Whole {
		if it = view.Spoken(it); c.Name == "execute_command" && l.outputBehind(number) {
			it.Body = ""
		}
		it.Title = strings.TrimPrefix(strings.TrimPrefix(it.Title, "ok"), ", ")
		if it.Title == "exit 0" {
			it.Title = ""
		}
		if it.Title == "" && it.Body == "" && it.Images == 0 {
			return nil
		}
	}
	return below(view.Lines(it, l.room(view.Output)))
}

// below are lines below the row that they answer.
func below(lines []view.Line) []view.Line {
	for i := range lines {
		lines[i].Text = "  " + lines[i].Text
	}
	return lines
}

// nameResults adds to each result the name of its tool.
func nameResults(parts []view.Item, s *task.State) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != "tool_result" || strings.Contains(p.Title, " of ") {
			continue
		}
		if c := s.Call(p.Call); c != nil && c.Name != "" {
			p.Title = strings.Replace(p.Title, "result", "result of "+c.Name, 1)
		}
	}
}

// Page is the page of one task in a folder of pages.
type Page struct {
	File string // its name in the folder
	Task api.Summary
}

// Index writes the page that links to the others in its folder. It returns how many secrets it masked.
func Index(w io.Writer, pages []Page, o Options) (masked int, err error) {
	p := &page{out: bufio.NewWriter(w), set: newTypesetter(o.Mask)}
	p.begin(fmt.Sprintf("%d tasks", len(pages)))
	for _, one := range pages {
		t := one.Task
		title := p.set.title(t.Title)
		if title == "" {
			title = p.set.plain(t.ID)
		}
		p.print("<section><a href=\"%s\">%s</a>\n", html.EscapeString(url.PathEscape(one.File)), title)
		p.facts(&store.View{Summary: t})
		p.print("</section>\n")
	}
	p.print("</body></html>\n")
	if err := p.out.Flush(); err != nil {
		return 0, fmt.Errorf("write the index: %w", err)
	}
	return p.set.mask.count, nil
}

// answersTo looks up, for consecutive rows of a task, the results of tools that the rows lack, by index. It reads the
// matching stretch of the model's history. Rows of our own runs do not need it: the journal has their results. An
// unreadable message answers nothing.
func answersTo(v *store.View) func(batch []Element) map[int]view.Item {
	api := v.State.API()
	times := make([]int64, len(api))
	for i, m := range api {
		times[i] = m.TS()
	}
	return func(batch []Element) map[int]view.Item {
		if !slices.ContainsFunc(batch, func(e Element) bool { return e.Message != nil && e.Message.Foreign }) {
			return nil
		}
		rows := make([][]byte, len(batch))
		for i, e := range batch {
			rows[i] = e.Raw
		}
		from, to := view.Stretch(rows, times)
		if from >= to {
			return nil
		}
		part := api[from:to]
		if slices.ContainsFunc(part, func(m *task.Message) bool { return m.Missing }) {
			return nil // the indexes would no longer match
		}
		raws, err := v.State.Raws(part)
		if err != nil {
			return nil
		}
		messages := make([][]byte, len(raws))
		for i, raw := range raws {
			messages[i] = raw
		}
		return view.Answers(rows, messages, from)
	}
}

// upperCase holds the characters whose upper case is several characters (Unicode's
// unconditional special casings), except for Greek ones with an iota below.
var upperCase = map[rune]string{
	'\u00df': "SS", '\u0149': "\u02bcN", '\u01f0': "J\u030c", '\u0390': "\u0399\u0308\u0301",
	'\u03b0': "\u03a5\u0308\u0301", '\u0587': "\u0535\u0552", '\u1e96': "H\u0331", '\u1e97': "T\u0308",
	'\u1e98': "W\u030a", '\u1e99': "Y\u030a", '\u1e9a': "A\u02be", '\u1f50': "\u03a5\u0313",
	'\u1f52': "\u03a5\u0313\u0300", '\u1f54': "\u03a5\u0313\u0301", '\u1f56': "\u03a5\u0313\u0342",
	'\u1fb2': "\u1fba\u0399", '\u1fb3': "\u0391\u0399", '\u1fb4': "\u0386\u0399", '\u1fb6': "\u0391\u0342",
	'\u1fb7': "\u0391\u0342\u0399", '\u1fbc': "\u0391\u0399", '\u1fc2': "\u1fca\u0399",
	'\u1fc3': "\u0397\u0399", '\u1fc4': "\u0389\u0399", '\u1fc6': "\u0397\u0342",
	'\u1fc7': "\u0397\u0342\u0399", '\u1fcc': "\u0397\u0399", '\u1fd2': "\u0399\u0308\u0300",
	'\u1fd3': "\u0399\u0308\u0301", '\u1fd6': "\u0399\u0342", '\u1fd7': "\u0399\u0308\u0342",
	'\u1fe2': "\u03a5\u0308\u0300", '\u1fe3': "\u03a5\u0308\u0301", '\u1fe4': "\u03a1\u0313",
	'\u1fe6': "\u03a5\u0342", '\u1fe7': "\u03a5\u0308\u0342", '\u1ff2': "\u1ffa\u0399",
	'\u1ff3': "\u03a9\u0399", '\u1ff4': "\u038f\u0399", '\u1ff6': "\u03a9\u0342",
	'\u1ff7': "\u03a9\u0342\u0399", '\u1ffc': "\u03a9\u0399", '\ufb00': "FF", '\ufb01': "FI", '\ufb02': "FL",
	'\ufb03': "FFI", '\ufb04': "FFL", '\ufb05': "ST", '\ufb06': "ST", '\ufb13': "\u0544\u0546",
	'\ufb14': "\u0544\u0535", '\ufb15': "\u0544\u053b", '\ufb16': "\u054e\u0546", '\ufb17': "\u0544\u053d",
}
