package export

import (
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// Importing the library's languages costs 6 ms and some megabytes at every start of the program. A page of a task only
// has to separate comments, strings, numbers and keywords, and languages write those in a few ways.

// family is the syntax of a group of languages.
type family struct {
	names    string
	comments []string // patterns
	strings  []string
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
		[]string{`//[^\n]*`, `/\*[\s\S]*?\*/`}, []string{doubleQuoted, singleQuoted, backQuoted},
	},
	{
		"py python rb ruby sh bash shell zsh fish console yaml yml toml ini perl pl r make makefile " +
			"dockerfile docker elixir ex nix tf hcl conf",
		[]string{`#[^\n]*`}, []string{tripleQuoted, doubleQuoted, singleQuoted},
	},
	{"sql lua hs haskell elm ada", []string{`--[^\n]*`}, []string{doubleQuoted, singleQuoted}},
	{"html xml svg vue svelte xhtml", []string{`<!--[\s\S]*?-->`}, []string{doubleQuoted, singleQuoted}},
}

// keywords are the words that carry structure in most languages. A keyword of another language is coloured too, which
// does no harm.
const keywords = `abstract and as assert async await begin break case catch class const continue def default defer del do done echo ` +
	`elif else ` +
	`elsif end enum esac except export extends extern false fi final finally fn for foreach from func function global go goto if impl ` +
	`implements import in include instanceof interface internal is lambda let local loop map match mod module mut namespace new nil none ` +
	`not null of operator or override package pass private protected pub public raise range readonly record require return select self ` +
	`static struct super switch then this throw throws trait true try type typedef typeof union unless until use using val var void ` +
	`volatile when where while with yield`

var languages = sync.OnceValue(func() map[string]chroma.Lexer {
	all := map[string]chroma.Lexer{}
	for _, f := range families {
		lexer := f.lexer()
		for name := range strings.FieldsSeq(f.names) {
			all[name] = lexer
		}
	}
	diff := diffLexer()
	all["diff"], all["patch"] = diff, diff
	return all
})

// lexerOf is nil for an unknown language.
func lexerOf(language string) chroma.Lexer {
	return languages()[strings.ToLower(language)]
}

func (f family) lexer() chroma.Lexer {
	var rules []chroma.Rule
	for _, p := range f.comments {
		rules = append(rules, chroma.Rule{Pattern: p, Type: chroma.Comment})
	}
	for _, p := range f.strings {
		rules = append(rules, chroma.Rule{Pattern: p, Type: chroma.String})
	}
	rules = append(rules,
		chroma.Rule{Pattern: `</?[A-Za-z][\w:-]*`, Type: chroma.NameTag},
		chroma.Rule{Pattern: `(?:` + strings.ReplaceAll(keywords, " ", "|") + `)\b`, Type: chroma.Keyword},
		chroma.Rule{Pattern: `0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?`, Type: chroma.Number},
		chroma.Rule{Pattern: `[A-Za-z_$][\w$]*(?=\()`, Type: chroma.NameFunction},
		chroma.Rule{Pattern: `[A-Za-z_$][\w$]*`, Type: chroma.Text},
		chroma.Rule{Pattern: `[^\w$"'/#<` + "`" + `-]+|[\s\S]`, Type: chroma.Text},
	)
	return newLexer(f.names, rules)
}

func diffLexer() chroma.Lexer {
	return newLexer("diff", []chroma.Rule{
		{Pattern: `(?:@@|diff |index |--- |\+\+\+ )[^\n]*\n?`, Type: chroma.GenericHeading},
		{Pattern: `\+[^\n]*\n?`, Type: chroma.GenericInserted},
		{Pattern: `-[^\n]*\n?`, Type: chroma.GenericDeleted},
		{Pattern: `[^\n]*\n|[^\n]+`, Type: chroma.Text},
	})
}

func newLexer(name string, rules []chroma.Rule) chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: name}, func() chroma.Rules { return chroma.Rules{"root": rules} })
}
