package webtool

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Markdown turns HTML into readable text: headings, links, lists, tables and code stay, scripts, styles and hidden
// parts go. It reads tokens and builds no tree, so its time grows with the length of the page, however deeply it is
// nested. base resolves links.
func Markdown(page string, base *url.URL) string {
	m := &markdown{base: base}
	z := html.NewTokenizer(strings.NewReader(page))
	for m.out.Len() < 32<<20 { // more is no page for readers
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch {
		case m.skipped(t):
		case kind == html.TextToken:
			m.text(t.Data)
		case kind == html.StartTagToken, kind == html.SelfClosingTagToken:
			m.start(t)
		case kind == html.EndTagToken:
			m.end(t.Data)
		}
	}
	m.end("a")
	m.end("pre")
	text := strings.TrimSpace(m.out.String())
	if title := strings.Join(strings.Fields(m.title.String()), " "); title != "" && !strings.Contains(text, "# "+title+"\n") {
		text = strings.TrimSpace("Title: " + title + "\n\n" + text)
	}
	return text
}

// markdown is the state of a page's conversion to text.
type markdown struct {
	base  *url.URL
	out   strings.Builder
	title strings.Builder

	breaks int  // line breaks to write before the next text
	blank  bool // write a blank before the next text
	begun  bool // the line has text
	quote  int  // number of open quotations

	skip  string // the tag whose content is dropped
	depth int    // number of open tags of that name; if its end may be missing, of blocks in it

	inTitle bool
	link    string // target of the open link, as the page writes it
	linked  bool   // the link's text has begun
	lists   []list
	tables  []table
	cell    string           // what to write before the text of a cell
	pre     *strings.Builder // preformatted text, nil outside
	lang    string           // its language
}

// list is an open list.
type list struct {
	ordered bool
	items   int
}

// table is an open table. A table that holds another table is only layout.
type table struct {
	rows, cells int
	layout      bool
}

// dropped are tags whose content is not for readers.
var dropped = strings.Fields("script style noscript template svg math iframe object canvas audio video select textarea button dialog")

// nesting are tags that hold others, besides the blocks.
var nesting = strings.Fields("ul ol menu datalist table blockquote pre h1 h2 h3 h4 h5 h6")

// void are tags without content.
var void = strings.Fields("area base br col embed hr img input link meta source track wbr")

// endless are tags whose end tag may be missing: a tag that ends each of them. A block's begin or end ends a p.
var endless = map[string][]string{
	"p": strings.Fields("p li dt dd td th tr option hr"), "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"},
	"option": {"option", "optgroup"}, "optgroup": {"optgroup"}, "td": cells, "th": cells, "tr": cells[2:],
	"thead": cells[3:], "tbody": cells[3:], "tfoot": cells[3:],
}

var cells = strings.Fields("td th tr thead tbody tfoot")

// blocks are tags that begin and end a line, with the number of line breaks.
var blocks = map[string]int{
	"p": 2, "div": 1, "section": 1, "article": 1, "header": 1, "footer": 1, "nav": 1, "main": 1, "aside": 1, "form": 1,
	"figure": 1, "figcaption": 1, "address": 1, "details": 1, "summary": 1, "dl": 2, "dt": 1, "dd": 1, "fieldset": 1,
	"legend": 1, "caption": 1, "option": 1, "body": 1,
}

// attribute returns the value of an attribute, "" without one.
func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// hidden reports whether an element's attributes hide the element.
func hidden(t html.Token) bool {
	is := slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
	style := strings.ReplaceAll(strings.ToLower(attribute(t, "style")), " ", "")
	return is || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

// skipped follows dropped content up to its end, and reports whether the token belongs to it.
func (m *markdown) skipped(t html.Token) bool {
	if m.skip == "" || t.Type != html.StartTagToken && t.Type != html.EndTagToken {
		return m.skip != ""
	}
	ends, counts := endless[m.skip], t.Data == m.skip
	if ends != nil {
		counts = endless[t.Data] == nil && (blocks[t.Data] > 0 || slices.Contains(nesting, t.Data))
	}
	switch {
	case m.depth == 1 && (slices.Contains(ends, t.Data) || m.skip == "p" && counts):
		m.depth = 0
	case counts && t.Type == html.StartTagToken:
		m.depth++
	case counts:
		m.depth--
	}
	if m.depth > 0 {
		return true
	}
	m.skip = ""
	return ends == nil
}

func (m *markdown) start(t html.Token) {
	name := t.Data
	if (slices.Contains(dropped, name) || hidden(t)) && !slices.Contains(void, name) && t.Type == html.StartTagToken {
		m.skip, m.depth = name, 1
		return
	}
	if m.pre != nil && name != "code" && name != "br" {
		return
	}
	if n := blocks[name]; n > 0 {
		m.block(n)
		return
	}
	switch name {
	case "title":
		m.inTitle = true
	case "base":
		// Each link repeats the address that it is relative to: a long one would make a text of any size.
		if to, err := m.base.Parse(attribute(t, "href")); err == nil && usualPort[to.Scheme] != "" && len(to.String()) <= 2<<10 {
			m.base = to
		}
	case "a":
		m.end("a")
		m.link = attribute(t, "href")
	case "img":
		if alt := strings.Join(strings.Fields(attribute(t, "alt")), " "); alt != "" {
			if src := m.resolved(attribute(t, "src")); src != "" {
				m.text("![" + alt + "](" + src + ")")
			}
		}
	case "br":
		if m.pre != nil {
			m.pre.WriteByte('\n')
		} else {
			m.block(1)
		}
	case "hr":
		m.block(2)
		m.text("---")
		m.block(2)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		m.block(2)
		m.mark(strings.Repeat("#", int(name[1]-'0')) + " ")
	case "blockquote":
		m.block(2)
		m.quote++
	case "pre":
		m.end("a")
		m.block(2)
		m.pre, m.lang = &strings.Builder{}, ""
	case "code", "kbd", "samp":
		if m.pre == nil {
			m.text("`")
			return
		}
		for class := range strings.FieldsSeq(attribute(t, "class")) {
			if lang, is := strings.CutPrefix(class, "language-"); is && !strings.ContainsAny(lang, "`") {
				m.lang = lang
			}
		}
	case "ul", "ol":
		m.block(2 - min(len(m.lists), 1))
		m.lists = append(m.lists, list{ordered: name == "ol"})
	case "li":
		m.item()
	case "table", "tr", "td", "th":
		m.tableStart(name)
	}
}

// resolved returns the target of a link, "" for one that cannot be followed.
func (m *markdown) resolved(href string) string {
	if href = strings.TrimSpace(href); href == "" || href[0] == '#' {
		return ""
	}
	to, err := m.base.Parse(href)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" && to.Scheme != "mailto" {
		return ""
	}
	return inBrackets.Replace(to.String())
}

var inBrackets = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")

func (m *markdown) item() {
	m.block(1)
	marker := "- "
	if n := len(m.lists); n > 0 {
		l := &m.lists[n-1]
		if l.items++; l.ordered {
			marker = strconv.Itoa(l.items) + ". "
		}
		marker = strings.Repeat("  ", min(n-1, 20)) + marker
	}
	m.mark(marker)
}

func (m *markdown) end(name string) {
	if m.pre != nil && name != "pre" {
		return
	}
	if n := blocks[name]; n > 0 {
		m.block(n)
		return
	}
	switch name {
	case "title":
		m.inTitle = false
	case "a":
		if m.linked {
			m.out.WriteString("](" + m.link + ")")
		}
		m.link, m.linked = "", false
	case "h1", "h2", "h3", "h4", "h5", "h6":
		m.block(2)
	case "blockquote":
		m.block(2)
		m.quote = max(m.quote-1, 0)
	case "pre":
		m.fence()
	case "code", "kbd", "samp":
		m.blank = false
		m.text("`")
	case "ul", "ol":
		if len(m.lists) > 0 {
			m.lists = m.lists[:len(m.lists)-1]
		}
		m.block(2 - min(len(m.lists), 1))
	case "td", "th":
		if n := len(m.tables); n == 0 || m.tables[n-1].layout {
			m.blank = true
		}
	case "table", "tr":
		m.tableEnd(name)
	}
}

// fence writes preformatted text between fences longer than any fence in it.
func (m *markdown) fence() {
	if m.pre == nil {
		return
	}
	text := strings.Trim(m.pre.String(), "\n")
	m.pre = nil
	if strings.TrimSpace(text) == "" {
		return
	}
	ticks := "```"
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '`' }) {
		if len(run) >= len(ticks) {
			ticks = run + "`"
		}
	}
	for i, line := range strings.Split(ticks+m.lang+"\n"+text+"\n"+ticks, "\n") {
		if i > 0 {
			m.block(1)
		}
		m.newline()
		m.out.WriteString(line)
		m.begun = true
	}
	m.block(2)
}

func (m *markdown) tableStart(name string) {
	n := len(m.tables)
	switch name {
	case "table":
		if n > 0 {
			m.tables[n-1].layout, m.cell = true, ""
		}
		m.block(2)
		m.tables = append(m.tables, table{})
		return
	case "tr":
		if n > 0 {
			m.tables[n-1].cells = 0
			m.breaks = max(m.breaks, 1)
		}
		return
	}
	if n == 0 || m.tables[n-1].layout {
		m.blank = true
		return
	}
	m.openCell()
	t := &m.tables[n-1]
	if t.cells++; t.cells == 1 {
		m.cell = "| "
	} else {
		m.cell = " | "
	}
}

// openCell writes what belongs before the text of a cell. It waits until the text comes, because a table in the cell
// would show that the outer table is only layout.
func (m *markdown) openCell() {
	if m.cell == "" {
		return
	}
	m.newline()
	m.out.WriteString(m.cell)
	m.cell, m.blank, m.begun = "", false, false
}

func (m *markdown) tableEnd(name string) {
	n := len(m.tables)
	if n == 0 {
		return
	}
	t := &m.tables[n-1]
	if name == "table" {
		m.tables = m.tables[:n-1]
		m.breaks = max(m.breaks, 2)
		return
	}
	if t.layout || t.cells == 0 {
		m.block(1)
		return
	}
	m.end("a")
	m.openCell()
	m.out.WriteString(" |")
	if t.rows++; t.rows == 1 {
		m.breaks = 1
		m.newline()
		m.out.WriteString("|" + strings.Repeat(" --- |", t.cells))
	}
	t.cells, m.breaks, m.blank = 0, 1, false
}

// block ends the line, and sets the number of line breaks before the next text. A cell of a table stays one line.
func (m *markdown) block(breaks int) {
	if n := len(m.tables); n > 0 && !m.tables[n-1].layout && m.tables[n-1].cells > 0 {
		m.blank = true
		return
	}
	m.breaks, m.blank = max(m.breaks, breaks), false
}

// newline writes the pending line breaks.
func (m *markdown) newline() {
	if m.breaks == 0 && m.out.Len() > 0 {
		return
	}
	for i := range m.breaks {
		if m.out.Len() == 0 {
			break
		}
		m.out.WriteByte('\n')
		if i < m.breaks-1 && m.quote > 0 {
			m.out.WriteString(strings.TrimSpace(strings.Repeat("> ", min(m.quote, 5))))
		}
	}
	m.out.WriteString(strings.Repeat("> ", min(m.quote, 5)))
	m.breaks, m.blank, m.begun = 0, false, false
}

// mark starts a line with a marker.
func (m *markdown) mark(marker string) {
	m.openCell()
	m.newline()
	m.out.WriteString(marker)
	m.begun = false
}

// text writes text with its blanks collapsed.
func (m *markdown) text(s string) {
	if m.pre != nil {
		m.pre.WriteString(s)
		return
	}
	if m.inTitle {
		fmt.Fprint(&m.title, s)
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		m.blank = m.blank || s != ""
		return
	}
	before := strings.TrimLeft(s[:1], " \t\r\n\f") == ""
	m.openCell()
	m.newline()
	if (before || m.blank) && m.begun {
		m.out.WriteByte(' ')
	}
	if m.link != "" && !m.linked {
		if m.link = m.resolved(m.link); m.link != "" {
			m.out.WriteByte('[')
			m.linked = true
		}
	}
	text := strings.Join(words, " ")
	if len(m.tables) > 0 && !m.tables[len(m.tables)-1].layout {
		text = strings.ReplaceAll(text, "|", `\|`)
	}
	m.out.WriteString(text)
	m.begun, m.blank = true, strings.TrimRight(s[len(s)-1:], " \t\r\n\f") == ""
}
