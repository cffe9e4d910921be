package filetool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// SearchFiles gives the tool search_files. Patterns are RE2, which Rust's syntax
// is nearly the same as; line by line, letter case counts. Hidden files, what
// .gitignore and .rooignore hide and binary files are not searched, links not
// followed.
func SearchFiles() tool.Tool { return searchFiles{} }

type searchFiles struct{}

// searchFilesSpec is made once: it is asked for at every turn.
var searchFilesSpec = tool.Spec{
	Name:        "search_files",
	Description: "Search the files of a folder and all its subfolders with a regular expression. Shows each matching line with its number and one line before and after it, up to 300 places.",
	Schema: schema([]string{"path", "regex", "file_pattern"},
		"path", property("string", "Folder to search in, relative to the workspace. A single file works too."),
		"regex", property("string", "Regular expression (Rust/RE2 syntax, no look-around), matched line by line. Letter case counts; start with (?i) to ignore it."),
		"file_pattern", property(`["string","null"]`, "Glob that file names must match, such as *.go or **/*.{ts,tsx}. null means every file.")),
	Class:  tool.Read,
	Replay: tool.Again,
}

func (searchFiles) Spec() tool.Spec { return searchFilesSpec }

func (searchFiles) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, err := parseInput("search_files", raw)
	if err != nil {
		return nil, err
	}
	path, err := in.need(false, "path", "dir_path", "directory")
	if err != nil {
		return nil, err
	}
	pattern, err := in.need(false, "regex", "pattern")
	if err != nil {
		return nil, err
	}
	glob, hasGlob := in.text("file_pattern", "filePattern", "include")
	hasGlob = hasGlob && glob != ""
	re, err := regexp.Compile(pattern)
	if err != nil {
		var bad *syntax.Error
		errors.As(err, &bad)
		return nil, in.wrong(fmt.Sprintf("the regex %q cannot be used: %v. Look-around and back-references do not exist here; escape characters that are meant literally.", pattern, err))
	}
	files, err := compileGlob(glob)
	if err != nil {
		return nil, in.wrong(err.Error())
	}
	p, err := in.resolve(env, path)
	if err != nil {
		return nil, err
	}
	d := &done{ask: tool.Ask{Kind: "tool", Title: "search_files " + shown(p.Readable) + " /" + shown(pattern) + "/", Paths: p.Places(), Outside: p.Outside, Ignored: p.Ignored}}
	found := ""
	if p.Ignored {
		d.result = denied(p.Readable)
	} else if found, err = search(ctx, env.Workspace, p.Real, re, files); err == nil {
		d.result = tool.Result{Text: found}
	} else {
		why, err := explainFolder(p.Readable, p.Real, err)
		if err != nil {
			return nil, err
		}
		d.result = failed("%s", why)
	}
	var o esjson.Object
	o.String("tool", "searchFiles")
	o.String("path", p.Readable)
	o.String("regex", pattern)
	if hasGlob {
		o.String("filePattern", glob)
	}
	o.Bool("isOutsideWorkspace", p.Outside)
	o.String("content", found)
	d.ask.Text = string(o.Bytes())
	return d, nil
}

// search goes through a folder, or one file.
func search(ctx context.Context, ws *workspace.Workspace, base string, re *regexp.Regexp, names func(rel string) bool) (string, error) {
	rules, err := ws.Ignore()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(base)
	if err != nil {
		return "", err
	}
	q := &searching{ws: ws, finder: newFinder(re)}
	if info.Mode().IsRegular() {
		if err := q.files(ctx, []string{base}); err != nil {
			return "", err
		}
		return q.text(), nil
	}
	if !info.IsDir() {
		return "", workspace.ErrNotRegular
	}
	if tooWide(base) && base != ws.Root() {
		return "", errors.New("it is a home or root folder; name the folder below it that is meant")
	}
	var failure error
	var batch []string
	w := walker{base: base, root: ws.Root(), enter: func(name string) bool { return name[0] != '.' && name != "node_modules" }}
	err = w.walk(ctx, func(abs string, d fs.DirEntry) bool {
		if !d.Type().IsRegular() || d.Name()[0] == '.' || !names(slashRel(base, abs)) {
			return true
		}
		if rel, ok := insideRel(ws.Root(), abs); ok && rules.Hides(rel, false) {
			return true
		}
		if batch = append(batch, abs); len(batch) < searchBatch {
			return true
		}
		failure = q.files(ctx, batch)
		batch = batch[:0]
		return failure == nil && !q.full()
	})
	if err == nil && failure == nil && !q.full() {
		failure = q.files(ctx, batch)
	}
	if err = errors.Join(err, failure); err != nil {
		return "", err
	}
	return q.text(), nil
}

// maxSearchLine is how much of a line is looked at, in bytes.
const maxSearchLine = 1 << 20

// searchFile gives matching lines and one line around each, up to want groups and
// most lines. A zero byte makes a file binary, and then it gives nothing.
func searchFile(ctx context.Context, f io.Reader, re finder, want, most int) ([]foundLine, error) {
	br := bufio.NewReaderSize(&contextual{ctx, f}, 64<<10)
	var out []foundLine
	var before foundLine
	var beforeText, lower []byte // kept as bytes: few lines are shown
	groups := 0
	after := false // the line before matched
	for n := 1; ; n++ {
		if len(out) >= most {
			return out[:most], nil
		}
		line, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(line) == 0 && err != nil {
			return out, nil
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return nil, nil
		}
		text := line[:min(len(line), 4*maxFoundLine+8)] // as much as can be shown
		body := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		hit, matchErr := false, error(nil)
		if re.possible(body, &lower) {
			hit, matchErr = match(ctx, re.re, body)
		}
		switch {
		case matchErr != nil:
			return nil, matchErr
		case hit:
			first := n
			if before.number > 0 {
				first = before.number
			}
			if len(out) == 0 || out[len(out)-1].number < first-1 {
				if groups++; groups > want {
					return out, nil
				}
			}
			if before.number > 0 {
				before.text = string(beforeText)
				out = append(out, before)
			}
			out = append(out, foundLine{n, string(text)})
			after, before = true, foundLine{}
		case after:
			out = append(out, foundLine{n, string(text)})
			after, before = false, foundLine{}
		default:
			before.number, beforeText = n, append(beforeText[:0], text...)
		}
		if err != nil {
			return out, nil
		}
	}
}

// longLine is from how many bytes on a line is matched so that it can be stopped.
const longLine = 4 << 10

// match is re.Match for lines of any length. RE2 takes time in proportion to the
// line, but also to the pattern, and the two can be chosen to make minutes.
func match(ctx context.Context, re *regexp.Regexp, line []byte) (bool, error) {
	if len(line) < longLine {
		return re.Match(line), nil
	}
	r := &runes{ctx: ctx, line: line}
	hit := re.MatchReader(r)
	return hit && r.err == nil, r.err
}

// runes gives a line to a regular expression, until the context ends.
type runes struct {
	ctx  context.Context //nolint:containedctx // lives as long as one match
	line []byte
	n    int
	err  error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%64 == 0 && r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil {
		return 0, 0, r.err
	}
	if len(r.line) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return c, size, nil
}

// readLine gives a line with its end, at most maxSearchLine bytes of it, until the next
// one is read.
func readLine(br *bufio.Reader) ([]byte, error) {
	part, err := br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	line := bytes.Clone(part)
	for {
		part, err := br.ReadSlice('\n')
		if len(line) < maxSearchLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// compileGlob makes a test of paths relative to the searched folder. A glob
// without "/" is about the name at any depth; {a,b} gives alternatives.
func compileGlob(glob string) (func(string) bool, error) {
	glob = filepath.ToSlash(strings.TrimSpace(glob))
	if glob == "" || glob == "*" {
		return func(string) bool { return true }, nil
	}
	exclude := strings.HasPrefix(glob, "!")
	var text strings.Builder
	alternatives := expandBraces(strings.TrimPrefix(glob, "!"), 256)
	if alternatives == nil {
		return nil, fmt.Errorf("the file_pattern %q has too many alternatives", glob)
	}
	for _, g := range alternatives {
		if g = strings.TrimPrefix(g, "./"); g != "" && (g[0] == '#' || g[0] == '!') {
			g = `\` + g
		}
		text.WriteString(g + "\n")
	}
	rules := workspace.ParseIgnore(text.String(), false)
	return func(rel string) bool { return rules.Hides(rel, false) != exclude }, nil
}

// expandBraces writes {a,b} out, nil when that gives more than most texts.
func expandBraces(s string, most int) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, s[start:i])
			var out []string
			for _, p := range parts {
				rest := expandBraces(s[:open]+p+s[i+1:], most-len(out))
				if rest == nil || len(out)+len(rest) > most {
					return nil
				}
				out = append(out, rest...)
			}
			return out
		}
	}
	return []string{s} // never closed: literal
}
