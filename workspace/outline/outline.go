// Package outline reduces a source file to the lines that declare something, each with the lines that it spans: a
// reminder for a model of a file that it has read.
//
// It judges by the look of lines: a declaration begins with a word of the language, and the lines below it that are
// indented further belong to it. It does not parse, so a broken file has an outline, too, and now and then it
// mistakes another line for a declaration. A real parser for each language was rejected: the outline is a reminder,
// and the model can read the file again. Files of unknown languages have no outline.
//
// Pure: text in, text out.
package outline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// maxLine is the number of bytes that are shown of a line.
const maxLine = 160

// Of returns the outline of a file, one declaration on each line, as in
//
//	12--40 | func Open(path string) (*File, error) {
//
// with lines counted from 1; "" for a file that declares nothing, or of an unknown language. The ending of name
// decides the language.
func Of(name, text string) string {
	ext := strings.ToLower(path.Ext(name))
	at := slices.IndexFunc(languages, func(l language) bool { return slices.Contains(strings.Fields(l.ext), ext) })
	if at < 0 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ""
	}
	language := languages[at]
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i, line := range lines {
		level, declares := language.level(line)
		if !declares {
			continue
		}
		end := language.end(lines, i, level)
		fmt.Fprintf(&b, "%d--%d | %s\n", i+1, end+1, api.Shorten(strings.TrimRight(line, " \t"), maxLine))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// language describes the declarations of a language.
type language struct {
	ext      string                // endings of its files
	declares func() *regexp.Regexp // matches a line that declares something, without its indentation
	deepest  int                   // greatest indentation of a declaration, in columns
	headings bool                  // Markdown: a section ends at the next heading of its level
}

// level returns the indentation of a line that declares something.
func (l language) level(line string) (level int, declares bool) {
	inner, level := indented(line)
	if level > l.deepest || !l.declares().MatchString(inner) || !l.headings && statement().MatchString(inner) {
		return 0, false
	}
	if l.headings {
		level = len(inner) - len(strings.TrimLeft(inner, "#"))
	}
	return level, true
}

// indented returns a line without its indentation, and the number of columns of that.
func indented(line string) (inner string, columns int) {
	inner = strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(inner)]
	return inner, len(indent) + 3*strings.Count(indent, "\t")
}

// end returns the last line of a declaration that begins at a line: it includes all lines that are indented further,
// and the line that closes it.
func (l language) end(lines []string, begin, level int) int {
	last := begin
	for i := begin + 1; i < len(lines); i++ {
		inner, indent := indented(lines[i])
		if inner == "" {
			continue
		}
		if l.headings {
			if at, is := l.level(lines[i]); is && at <= level {
				break
			}
			last = i
			continue
		}
		if indent <= level {
			if closing().MatchString(inner) {
				last = i
				if strings.ContainsAny(inner[:1], "{") || opens().MatchString(inner) {
					continue // ") {" after parameters, "{" on a line of its own
				}
			}
			break
		}
		last = i
	}
	return last
}

var (
	// statement matches statements that look like the head of a method in languages with braces.
	statement = lazyregexp.New(`^(?:if|else|for|foreach|while|do|switch|match|catch|try|with|return|throw|new|await|yield|using|lock|when|unless|until|elif|elsif)\b`)

	closing = lazyregexp.New(`^(?:[{})\]]|end\b)`)
	opens   = lazyregexp.New(`^\).*[{:]\s*$`)
)

// The words with which declarations begin. Modifiers before them, such as static or public, are skipped.
var languages = []language{
	{ext: ".go", declares: lazyregexp.New(`^(?:func|type|var|const)\b`)},
	{ext: ".py .pyi", deepest: 8, declares: lazyregexp.New(`^(?:async\s+)?(?:def|class)\s`)},
	{ext: ".rb .rake", deepest: 8, declares: lazyregexp.New(`^(?:def|class|module)\s`)},
	{ext: ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte", deepest: 4, declares: lazyregexp.New(
		`^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?` +
			`(?:(?:function\b|class\s|interface\s|enum\s|namespace\s|type\s+\w+[^=]*=)` +
			`|(?:const|let|var)\s+\w+[^=]*=\s*(?:async\s*)?(?:function\b|\(|\w+\s*=>|class\b)` +
			`|(?:(?:public|private|protected|static|readonly|override|get|set|async|\*)\s+)*(?:constructor|#?[a-z_$][\w$]*)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^={]*)?\{\s*$)`)},
	{ext: ".rs", deepest: 4, declares: lazyregexp.New(
		`^(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+(?:"[^"]*"\s+)?)*(?:fn|struct|enum|trait|impl|mod|type|union|macro_rules!)\b`)},
	{ext: ".java .cs .kt .kts .swift .scala .dart .php .groovy", deepest: 8, declares: lazyregexp.New( // Java, C#, Kotlin, Swift, Scala, Dart, PHP
		`^(?:(?:public|private|protected|internal|open|static|final|abstract|sealed|override|virtual|async|suspend|inline|data|partial|readonly|native|synchronized|mutating|fileprivate|case|external|const|lateinit)\s+)*` +
			`(?:(?:class|interface|enum|record|struct|object|trait|protocol|extension|namespace|fun|func|function|def|init)\b` +
			`|[\w<>\[\],.?]+\s+\w+\s*\([^;]*\)\s*(?:throws\s+[\w,. ]+)?\s*\{\s*$)`)},
	{ext: ".c .h .cc .cpp .cxx .hh .hpp .m", declares: lazyregexp.New(
		`^(?:(?:typedef\s+)?(?:struct|union|enum|class|namespace)\b[^;]*$|template\s*<|#define\s+\w+\(|(?:[\w:<>,*&~]+\s+)+[*&]*[\w:~]+\s*\([^;]*$)`)},
	{ext: ".sh .bash .zsh", deepest: 2, declares: lazyregexp.New(`^(?:function\s+[\w:-]+|[\w:-]+\s*\(\)\s*\{?)`)},
	{ext: ".md .markdown", headings: true, declares: lazyregexp.New(`^#{1,6}\s+\S`)},
	{ext: ".ex .exs", deepest: 4, declares: lazyregexp.New(`^(?:defmodule|defp?|defmacrop?|defstruct|defprotocol|defimpl)\b`)},
	{ext: ".lua", deepest: 4, declares: lazyregexp.New(`^(?:local\s+)?function\b`)},
	{ext: ".sql", declares: lazyregexp.New(`(?i)^create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+)*(?:table|view|function|procedure|trigger|index|type|schema)\b`)},
	{ext: ".zig", deepest: 4, declares: lazyregexp.New(`^(?:pub\s+)?(?:export\s+|inline\s+)?(?:fn\s|const\s+\w+\s*=\s*(?:packed\s+|extern\s+)?(?:struct|enum|union)\b|test\b)`)},
}
