package export

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

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
					p.item(n.Item(), "ui")
				}
			}
		}
		p.print("</main>\n")
	}
	if api := v.State.API(); len(api) > 0 {
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
	shown int // bytes of pictures
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

// item writes one message. anchor makes its number a link target.
func (p *page) item(it view.Item, anchor string) {
	p.print("<section class=\"%s\" id=\"%s-%d\"><header><a href=\"#%s-%d\">#%d</a> %s", it.Class, anchor, it.Number, anchor,
		it.Number, it.Number, p.headline(it))
	if it.TS != 0 {
		p.print(" <time>%s</time>", clock(it.TS))
	}
	p.print("</header>\n")
	p.body(it)
	p.print("</section>\n")
}

// headline is the first line of an item; a command of many lines is shown whole.
func (p *page) headline(it view.Item) string {
	it.Images = 0 // they come below
	first, rest, more := strings.Cut(view.Headline(it), "\n")
	text := "<b>" + p.set.plain(first) + "</b>"
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
