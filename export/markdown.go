package export

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Markdown writes the history that the model sees, in the shape of Roo's own export: all messages, also condensed ones.
// It differs from Roo in three points: it writes reasoning instead of "[Unexpected content type: thinking]", calls
// reasoning that only its provider can read encrypted instead of "undefined", and marks a message without content
// instead of writing "undefined". Of a task that has only the history that the user sees, it writes that one in the same
// shape; Roo would write nothing.
func Markdown(ctx context.Context, w io.Writer, v *store.View, o Options) (Report, error) {
	var r Report
	m, out := mask{by: o.Mask}, bufio.NewWriter(w)
	page := turns{w: out}
	api, rows := v.State.API(), v.State.UI()
	if len(api) > 0 {
		rows = nil
	}
	for e := range elements(ctx, v, "api", api, 0, &r) {
		page.message(m.json(e.Raw))
	}
	for e := range elements(ctx, v, "ui", rows, 0, &r) {
		it := view.UI(m.json(e.Raw), e.Number)
		text := it.Body
		if it.Title != "" {
			text = strings.TrimSuffix("["+it.Title+"]\n"+it.Body, "\n")
		}
		if text != "" {
			page.turn(it.Class == view.User, text)
		}
	}
	r.Masked = m.count
	return r, trouble(v, "Markdown", ctx.Err(), out.Flush())
}

// turns writes messages in Markdown. Its writer keeps an error until the end.
type turns struct {
	w   io.Writer
	sep string
}

func (t *turns) message(raw []byte) {
	role, _ := esjson.GetString(raw, "role")
	t.turn(role == "user", markdownContent(raw))
}

func (t *turns) turn(user bool, text string) {
	who := "**Assistant:**"
	if user {
		who = "**User:**"
	}
	io.WriteString(t.w, wellFormed(t.sep+who+"\n\n"+text+"\n\n")) //nolint:errcheck // see above
	t.sep = "---\n\n"
}

// markdownContent is the content of a message.
func markdownContent(raw []byte) string {
	content, _ := esjson.Get(raw, "content")
	if s, err := esjson.Unquote(content); err == nil {
		return s
	}
	if esjson.TypeOf(content) != esjson.TypeArray && esjson.TypeOf(raw) == esjson.TypeObject {
		if _, typed := esjson.Get(raw, "type"); !typed && (len(content) == 0 || esjson.TypeOf(content) == esjson.TypeNull) {
			return "[no content]"
		}
		return markdownBlock(raw) // reasoning of 2025 is an item without a role
	}
	return markdownBlocks(content)
}

func markdownBlocks(content []byte) string {
	var parts []string
	for block := range esjson.Array(content) {
		parts = append(parts, markdownBlock(block))
	}
	return strings.Join(parts, "\n")
}

func markdownBlock(block []byte) string {
	kind, _ := esjson.GetString(block, "type")
	switch kind {
	case "text":
		text, _ := esjson.GetString(block, "text")
		return text
	case "image":
		return "[Image]"
	case "tool_use":
		name, _ := esjson.GetString(block, "name")
		input, _ := esjson.Get(block, "input")
		return "[Tool Use: " + name + "]\n" + markdownInput(input)
	case "tool_result":
		head := "[Tool]"
		if bad, _ := esjson.GetBool(block, "is_error"); bad {
			head = "[Tool (Error)]"
		}
		content, _ := esjson.Get(block, "content")
		if s, err := esjson.Unquote(content); err == nil {
			return head + "\n" + s
		}
		if esjson.TypeOf(content) == esjson.TypeArray {
			return head + "\n" + markdownBlocks(markdownResult(content))
		}
		return head
	case "reasoning", "thinking", "redacted_thinking":
		key := map[string]string{"reasoning": "text", "thinking": "thinking"}[kind]
		if text, ok := esjson.GetString(block, key); ok && key != "" {
			return "[Reasoning]\n" + text
		}
		return "[Reasoning]\n(encrypted)"
	case "thoughtSignature":
		return ""
	}
	return "[Unexpected content type: " + kind + "]"
}

// markdownResult is the content of a result. Parts without a type, as other tools write them, become words.
func markdownResult(content []byte) []byte {
	var parts [][]byte
	for part := range esjson.Array(content) {
		if _, typed := esjson.Get(part, "type"); typed || esjson.TypeOf(part) != esjson.TypeObject {
			parts = append(parts, part)
			continue
		}
		parts = append(parts, contextwindow.ResultParts(esjson.List([][]byte{part}))...)
	}
	return esjson.List(parts)
}

// markdownInput is the input of a call, one member a line, in JavaScript's order. The members of an array are its items,
// named by their indexes.
func markdownInput(input []byte) string {
	var lines []string
	if esjson.TypeOf(input) == esjson.TypeArray {
		for item := range esjson.Array(input) {
			lines = append(lines, strconv.Itoa(len(lines))+": "+display(item))
		}
		return strings.Join(lines, "\n")
	}
	if esjson.TypeOf(input) != esjson.TypeObject {
		return display(input)
	}
	ordered, err := esjson.Node(nil, input)
	if err != nil {
		return string(input)
	}
	for name, val := range esjson.Members(ordered) {
		lines = append(lines, capital(name)+": "+display(val))
	}
	return strings.Join(lines, "\n")
}

// display is a value as Roo prints it: a string as it is, objects and arrays as indented JSON.
func display(val []byte) string {
	if s, err := esjson.Unquote(val); err == nil {
		return s
	}
	switch esjson.TypeOf(val) {
	case esjson.TypeObject, esjson.TypeArray:
		var out bytes.Buffer
		if err := json.Indent(&out, val, "", "  "); err == nil {
			return out.String()
		}
	case esjson.TypeInvalid:
		return "undefined"
	}
	return string(val)
}

// capital makes the first UTF-16 unit upper case; half of a pair has none. The upper case
// of some characters is several, which package strings leaves as one.
func capital(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	if n == 0 || r == utf8.RuneError || r > 0xffff {
		return name
	}
	if r >= 0x1f80 && r < 0x1fb0 { // Greek, with an iota below
		return string([]rune{[...]rune{0x1f08, 0x1f28, 0x1f68}[(r-0x1f80)/16] + r%8, 0x399}) + name[n:]
	}
	if several, ok := upperCase[r]; ok {
		return several + name[n:]
	}
	return strings.ToUpper(name[:n]) + name[n:]
}

// wellFormed replaces lone surrogates, which esjson keeps in their three bytes, by one
// U+FFFD each, as every encoder does. strings.ToValidUTF8 would make one of several.
func wellFormed(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && i+2 < len(s) && s[i] == 0xed && s[i+1] >= 0xa0 {
			n = 3
		}
		out.WriteRune(r)
		i += n
	}
	return out.String()
}

// JSON writes one object: the task document, then both histories, one element a line and byte for byte as it is stored,
// unless a secret in it was masked:
//
//	{"task":{...},"ui":[...],"api":[...],"unread":[{history,number,problem}],"masked":0}
func JSON(ctx context.Context, w io.Writer, v *store.View, o Options) (Report, error) {
	var r Report
	m := mask{by: o.Mask}
	out := bufio.NewWriter(w)
	head, err := plain(v.Summary)
	if err != nil {
		return r, trouble(v, "JSON", err)
	}
	fmt.Fprintf(out, "{\"task\":%s", m.json(head))
	for _, h := range []struct {
		name string
		list []*task.Message
	}{{"ui", v.State.UI()}, {"api", v.State.API()}} {
		fmt.Fprintf(out, ",\n%q:[", h.name)
		sep := "\n"
		for e := range elements(ctx, v, h.name, h.list, 0, &r) {
			fmt.Fprintf(out, "%s%s", sep, m.json(e.Raw))
			sep = ",\n"
		}
		fmt.Fprint(out, "]")
	}
	unread, err := plain(append([]api.Unread{}, r.Unread...))
	r.Masked = m.count
	fmt.Fprintf(out, ",\n\"unread\":%s,\"masked\":%d}\n", unread, r.Masked)
	return r, trouble(v, "JSON", err, ctx.Err(), out.Flush())
}

// plain is JSON without the escapes that only HTML needs.
func plain(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

//go:embed page.css
var pageCSS string

// policy allows a page its own style and nothing else.
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// HTML writes one self-contained page: the conversation as the user saw it, with the results of tools, and folded below
// it what the model saw. It holds the pictures, up to a size.
func HTML(ctx context.Context, w io.Writer, v *store.View, o Options) (Report, error) {
	var r Report
	p := &page{out: bufio.NewWriter(w), set: newTypesetter(o.Mask)}
	p.begin(v.Summary.Title)
	p.facts(v)
	if ui := v.State.UI(); len(ui) > 0 {
		results, answers, notices := resultsByRow(v.State), answersTo(v), view.ByRow(view.Notices(v.State))
		p.happened(ctx, v)
		p.print("<details class=\"rows\"><summary>Requests, checkpoints and the like are hidden; open this to show them</summary></details>\n")
		p.print("<main>\n")
		from := 0
		for part := range slices.Chunk(ui, Together) {
			batch := slices.Collect(elements(ctx, v, "ui", part, from, &r))
			from += len(part)
			known := answers(batch)
			for i, e := range batch {
				it := view.UI(p.set.mask.json(e.Raw), e.Number)
				answer, ok := p.result(results[e.Message.ID])
				if !ok {
					answer, ok = known[i]
				}
				if ok {
					it.Parts = append(it.Parts, answer)
				}
				p.item(it, "ui")
				for _, n := range notices[e.Number] {
					it := n.Item()
					if n.Checkpoint != nil {
						it.Kind = "say:checkpoint" // as a row of Roo's
					}
					p.item(it, "ui")
				}
			}
		}
		p.print("</main>\n")
	}
	if api := v.State.API(); len(api) > 0 {
		p.day = ""
		p.print("<details class=\"api\"><summary>What the model saw: %d messages</summary>\n", len(api))
		for e := range elements(ctx, v, "api", api, 0, &r) {
			p.item(view.API(p.set.mask.json(e.Raw), e.Number), "api")
		}
		p.print("</details>\n")
	}
	for _, gap := range r.Unread {
		p.print("<p class=\"bad\">message %d (%s) cannot be read: %s</p>\n", gap.Number, gap.History, p.set.plain(gap.Problem))
	}
	p.print("</body></html>\n")
	r.Masked = p.set.mask.count
	return r, trouble(v, "HTML", ctx.Err(), p.out.Flush())
}

// page is a page that is being written. Its writer keeps the first error until the end.
type page struct {
	out   *bufio.Writer
	set   *typesetter
	shown int    // bytes of pictures
	day   string // of the message that was written last
}

func (p *page) print(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *page) begin(title string) {
	p.print(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>%s</title><style>
%s</style></head><body>
<h1>%s</h1>
`, policy, p.set.title(title), pageCSS, p.set.title(title))
}

// short is a title that fits above a page; the first message has the whole text.
func short(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if r := []rune(title); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return title
}

func (p *page) facts(v *store.View) {
	t := v.Summary
	facts := []string{t.ID, t.Source, t.Status}
	if t.TS != 0 {
		facts = append(facts, clock(t.TS))
	}
	if t.Provider+t.Model != "" {
		facts = append(facts, strings.Trim(t.Provider+"/"+t.Model, "/"))
	}
	if t.Usage.Cost != nil {
		facts = append(facts, "$"+t.Usage.Cost.String())
	}
	facts = append(facts, view.Count(t.Usage.TokensIn)+" tokens in, "+view.Count(t.Usage.TokensOut)+" out")
	if t.Workspace != "" {
		facts = append(facts, t.Workspace)
	}
	p.print("<p class=\"facts\">%s</p>\n", p.set.plain(strings.Join(facts, " · ")))
	for _, d := range t.Damaged {
		p.print("<p class=\"bad\">damaged: %s</p>\n", p.set.plain(d.Text()))
	}
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// item writes one message. anchor makes its number a link target. The day is written once, above its first message.
func (p *page) item(it view.Item, anchor string) {
	class := string(it.Class)
	if isNoise(it) {
		class += " noise"
	}
	if it.TS != 0 {
		if day := time.UnixMilli(it.TS).UTC().Format(time.DateOnly); day != p.day {
			p.day = day
			p.print("<p class=\"day\">%s</p>\n", day)
		}
	}
	if it.Number > 0 {
		p.print("<section class=\"%s\" id=\"%s-%d\"><header><a href=\"#%s-%d\">#%d</a> ", class, anchor, it.Number, anchor, it.Number, it.Number)
	} else { // a notice between two messages
		p.print("<section class=\"%s\"><header>", class)
	}
	p.print("%s", p.headline(it))
	if it.TS != 0 {
		p.print(" <time>%s</time>", time.UnixMilli(it.TS).UTC().Format("15:04"))
	}
	p.print("</header>\n")
	p.body(it)
	p.print("</section>\n")
}

// headline is the first line of an item; a command of many lines is shown whole. What a tool works on is apart from what
// it does.
func (p *page) headline(it view.Item) string {
	it.Images = 0 // they come below
	first, rest, more := strings.Cut(view.Headline(it), "\n")
	text := "<b>" + p.set.plain(first) + "</b>"
	if verb, object := view.Verb(it.Title); it.Class == view.Tool && object != "" {
		if lead, after, ok := strings.Cut(first, verb+" "); ok {
			text = "<b>" + p.set.plain(lead+verb) + "</b> <code>" + p.set.plain(after) + "</code>"
		}
	}
	if more {
		text += "<pre>" + p.set.plain(rest) + "</pre>"
	}
	return text
}

// long is the number of lines from which text is folded.
const long = 12

// body writes the text of an item and its parts.
func (p *page) body(it view.Item) {
	switch lines := strings.Count(it.Body, "\n"); {
	case it.Body == "":
	case it.Diff && lines > 8*long:
		p.print("<details><summary>%d lines</summary>", lines+1)
		p.diff(it.Body)
		p.print("</details>\n")
	case it.Diff:
		p.diff(it.Body)
	case it.Class == view.User || it.Class == view.Model || it.Class == view.Result || it.Class == view.Question:
		p.print("%s\n", p.set.markdown(it.Body))
	case it.Class == view.Reasoning:
		p.print("<details><summary>reasoning</summary>%s</details>\n", p.set.markdown(it.Body))
	case it.Class == view.Tool && esjson.Valid([]byte(it.Body)):
		p.print("<pre class=\"code\">%s</pre>\n", p.set.code(p.set.clean(display([]byte(it.Body))), "json"))
	case lines >= long, it.Class == view.Appended:
		p.print("<details><summary>%d lines</summary><pre>%s</pre></details>\n", lines+1, p.set.plain(it.Body))
	default:
		p.print("<pre>%s</pre>\n", p.set.plain(it.Body))
	}
	p.pictures(it)
	for _, choice := range it.Choices {
		p.print("<p class=\"choice\">%s</p>\n", p.set.plain(choice))
	}
	for _, part := range it.Parts {
		if part.Class == it.Class && part.Title == "" && !part.Partial {
			p.body(part) // the same speaker continues
			continue
		}
		p.print("<div class=\"%s\"><header>%s</header>\n", part.Class, p.headline(part))
		p.body(part)
		p.print("</div>\n")
	}
}

func (p *page) diff(text string) {
	p.print("<pre class=\"diff\">")
	for line := range strings.Lines(p.set.clean(text)) {
		p.print("<span class=\"%s\">%s</span>", view.DiffStyle(strings.TrimSuffix(line, "\n")), html.EscapeString(line))
	}
	p.print("</pre>\n")
}

// result is the result of a tool for the row that called it.
func (p *page) result(c *task.Call) (view.Item, bool) {
	if c == nil {
		return view.Item{}, false
	}
	raw, err := c.Result()
	if err != nil {
		return view.Item{Class: view.Failure, Title: "its result cannot be read", Body: err.Error()}, true
	}
	it := view.ToolResult(p.set.mask.json(raw))
	if c.Finished.Outcome != "ok" {
		it.Class, it.Title = view.Failure, c.Finished.Outcome
	}
	return it, true
}

// resultsByRow returns the calls whose results belong below a row.
func resultsByRow(s *task.State) map[uint64]*task.Call {
	out := map[uint64]*task.Call{}
	for _, c := range s.Calls() {
		if c.UI != 0 && c.Finished != nil {
			out[c.UI] = c
		}
	}
	return out
}

// Bounds on the pictures in a page, in bytes. A phone could not open a page with more.
const (
	maxPicture  = 4 << 20
	maxPictures = 32 << 20
)

// shownMedia are the pictures that a page shows, by their first bytes: the type in a task is untrusted. SVG is left out, as
// it may hold scripts and links.
var shownMedia = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pictures shows the pictures of an item, or describes them.
func (p *page) pictures(it view.Item) {
	for n := range it.Images {
		name := "image"
		if n < len(it.Pictures) && it.Pictures[n] != "" {
			name = "image: " + it.Pictures[n]
		}
		if n < len(it.Data) && it.Data[n] != "" {
			address, err := p.picture(it.Data[n])
			if err == nil {
				p.print("<p><img alt=\"%s\" src=\"%s\"></p>\n", p.set.plain(name), address)
				continue
			}
			name += " (not shown: " + err.Error() + ")"
		}
		p.print("<p class=\"image\">[%s]</p>\n", p.set.plain(name))
	}
}

// picture is a data: address that is built from the bytes of a picture, or the reason why there is none.
func (p *page) picture(address string) (fresh string, err error) {
	_, data, _ := strings.Cut(address, ";base64,")
	if len(data) > maxPicture*4/3+4 {
		return "", fmt.Errorf("more than %s", view.Bytes(maxPicture))
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil {
		return "", errors.New("it is damaged")
	}
	media := http.DetectContentType(raw)
	switch {
	case !slices.Contains(shownMedia, media):
		return "", errors.New("it is not a picture that is known")
	case p.shown+len(raw) > maxPictures:
		return "", fmt.Errorf("the page holds %s of pictures", view.Bytes(maxPictures))
	}
	p.shown += len(raw)
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(raw), nil
}

// A page of a task only has to separate comments, strings, numbers and keywords, and languages write those in a few ways.
// A library was rejected: its languages and styles cost time and megabytes at every start of the program.

// family is the syntax of a group of languages.
type family struct {
	names             string
	comments, strings string // patterns
}

const (
	doubleQuoted = `"(?:\\.|[^"\\\n])*"`
	singleQuoted = `'(?:\\.|[^'\\\n])*'`
	backQuoted   = "`[^`]*`"
	tripleQuoted = `"""[\s\S]*?"""|'''[\s\S]*?'''`
)

var families = []family{
	{
		"go js javascript jsx ts typescript tsx mjs java c h cpp c++ cc hpp cs csharp " +
			"rs rust swift kotlin kt php scala dart groovy json jsonc json5 css scss less proto zig",
		`//[^\n]*|/\*[\s\S]*?\*/`, doubleQuoted + "|" + singleQuoted + "|" + backQuoted,
	},
	{
		"py python rb ruby sh bash shell zsh fish console yaml yml toml ini perl pl r make makefile " +
			"dockerfile docker elixir ex nix tf hcl conf",
		`#[^\n]*`, tripleQuoted + "|" + doubleQuoted + "|" + singleQuoted,
	},
	{"sql lua hs haskell elm ada", `--[^\n]*`, doubleQuoted + "|" + singleQuoted},
	{"html xml svg vue svelte xhtml", `<!--[\s\S]*?-->`, doubleQuoted + "|" + singleQuoted},
}

// keywords are the words that carry structure in most languages. A keyword of another language is coloured too, which
// does no harm.
const keywords = ` abstract and as assert async await begin break case catch class const continue def default defer del do done echo ` +
	`elif else ` +
	`elsif end enum esac except export extends extern false fi final finally fn for foreach from func function global go goto if impl ` +
	`implements import in include instanceof interface internal is lambda let local loop map match mod module mut namespace new nil none ` +
	`not null of operator or override package pass private protected pub public raise range readonly record require return select self ` +
	`static struct super switch then this throw throws trait true try type typedef typeof union unless until use using val var void ` +
	`volatile when where while with yield `

// languages are patterns whose groups are named as the classes of a page are.
var languages = sync.OnceValue(func() map[string]*regexp.Regexp {
	diff := regexp.MustCompile(`(?m)(?P<gh>^(?:@@|diff |index |--- |\+\+\+ ).*)|(?P<gi>^\+.*)|(?P<gd>^-.*)`)
	all := map[string]*regexp.Regexp{"diff": diff, "patch": diff}
	for _, f := range families {
		syntax := regexp.MustCompile(`(?P<c>` + f.comments + `)|(?P<s>` + f.strings + `)|(?P<nt></?[A-Za-z][\w:-]*)|` +
			`(?P<m>0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_$][\w$]*)`)
		for name := range strings.FieldsSeq(f.names) {
			all[name] = syntax
		}
	}
	return all
})

// lexerOf is nil for an unknown language.
func lexerOf(language string) *regexp.Regexp { return languages()[strings.ToLower(language)] }
